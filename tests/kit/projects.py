"""The projects in `examples/`: copied, their scripts run, their README taken at its word."""

import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from kit.snippets import ROOT

EXAMPLES = ROOT / "examples"
_WRITTEN = shutil.ignore_patterns("data", "state*", "out*", "view.duckdb*", "report.html", "__pycache__")


@dataclass(frozen=True, slots=True)
class Example:
    """A copy of a project, as it is in a fresh clone."""

    directory: Path

    @property
    def job(self) -> Path:
        return self.directory / "job.toml"

    @property
    def sql(self) -> str:
        return str(tomllib.loads(self.job.read_text(encoding="utf-8"))["view"]["sql"])

    @property
    def readme(self) -> str:
        return (self.directory / "README.md").read_text(encoding="utf-8")

    def script(self, *words: str) -> None:
        """Run a script of the project; every line that it prints is in the README."""
        command = [sys.executable, "-B", *words]
        ran = subprocess.run(command, cwd=self.directory, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        for line in ran.stdout.splitlines():
            assert line in self.readme, f"{words[0]} prints {line}"


def copied(name: str, to: Path) -> Example:
    return Example(Path(shutil.copytree(EXAMPLES / name, to / name, ignore=_WRITTEN)))
