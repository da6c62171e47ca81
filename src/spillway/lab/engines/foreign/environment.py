"""A Python environment for one engine, made on demand below a cache directory and kept.

The directory is `$SPILLWAY_CACHE`, or `~/.cache/spillway`, with `engines/NAME-VERSION` below it. Packages are
installed by name, from wherever pip is configured to look. Invariant: an environment that has its final name
is complete; it is made under another name and renamed, so an interrupted installation leaves none.
Known limit: two benchmarks that start at once both install; one of the two results stays.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spillway.errors import JobError

CACHE_VARIABLE = "SPILLWAY_CACHE"
_LINE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class EngineEnvironment:
    """What to install, and the versions of Python that have it, the best first."""

    name: str
    version: str
    requirements: tuple[str, ...]
    pythons: tuple[tuple[int, int], ...]

    def directory(self, environ: Mapping[str, str]) -> Path:
        """Where the environment is, or will be."""
        return cache_directory(environ) / "engines" / f"{self.name}-{self.version}"

    def ensure(self, note: Callable[[str], None], environ: Mapping[str, str] | None = None) -> Path:
        """The environment's Python; the environment is made first if it does not exist."""
        known = os.environ if environ is None else environ
        directory = self.directory(known)
        if not python_of(directory).exists():
            note(f"making an environment for {self.name} {self.version} in {directory}; this takes minutes")
            self._make(directory)
            note(f"made the environment for {self.name} {self.version}")
        return python_of(directory)

    def _make(self, directory: Path) -> None:
        python = find_python(self.pythons)
        if python is None:
            known = ", ".join(f"{major}.{minor}" for major, minor in self.pythons)
            raise JobError(
                f"bench: {self.name} {self.version} needs Python {known}, and the path has none; install one"
            )
        directory.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
        try:
            self._run([python, "-m", "venv", str(unfinished)])
            install = [str(python_of(unfinished)), "-m", "pip", "install", "--quiet", "--no-input"]
            self._run([*install, "--disable-pip-version-check", *self.requirements])
            unfinished.rename(directory)
        except OSError as error:
            if not python_of(directory).exists():
                raise JobError(
                    f"bench: no environment for {self.name} in {directory}: {error}; "
                    f"point {CACHE_VARIABLE} at a directory that can be written"
                ) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _run(self, argv: Sequence[str]) -> None:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise JobError(
                f"bench: {self.name} {self.version} cannot be installed: {_last_error(done.stderr)}; "
                "check pip's index, or leave the engine out"
            )


def cache_directory(environ: Mapping[str, str]) -> Path:
    """`$SPILLWAY_CACHE`, or `~/.cache/spillway`."""
    given = environ.get(CACHE_VARIABLE)
    return Path(given).expanduser() if given else Path.home() / ".cache" / "spillway"


def python_of(directory: Path) -> Path:
    """The Python of an environment; moving the directory does not change it."""
    return directory / "bin" / "python"


def find_python(versions: Sequence[tuple[int, int]]) -> str | None:
    """This Python if its version is among them, or else the first that is on the path and starts."""
    if sys.version_info[:2] in versions:
        return sys.executable
    for major, minor in versions:
        found = shutil.which(f"python{major}.{minor}")
        if found and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            return found
    return None


def _last_error(text: str) -> str:
    """The last line of pip's that names an error, or the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return ((errors or lines or ["it said nothing"])[-1])[:_LINE_CHARACTERS]
