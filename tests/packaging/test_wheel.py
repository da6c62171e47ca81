"""The wheel: complete, installable into an empty environment, and able to run the demo there.

The dependencies of the environment that runs the tests are lent to the new one, so nothing is downloaded. The
package itself is not: what is not in the wheel is missing.
"""

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from kit.snippets import ROOT
from spillway import __version__

PACKAGE = ROOT / "src" / "spillway"
DEMO_SECONDS = 240
UNDECLARED = {
    "cycler": "comes with matplotlib",
    "py4j": "comes with pyspark",
    "pathway": "in an environment of its own, which the benchmark makes",
    "pgserver": "for benchmarks; they say so where it is missing",
    "pyflink": "likewise",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (file,) = directory.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and the dependencies."""
    directory = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    install = ["pip", "install", "--python", str(python), "--no-deps", "--offline", "--quiet", str(wheel)]
    subprocess.run([sys.executable, "-m", "uv", *install], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text("\n".join(lent()) + "\n")
    return directory / "bin"


def lent() -> list[str]:
    """Where this environment has its packages; the .pth files in there are not read again."""
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path]
    return list(dict.fromkeys(place for place in places if Path(place).name == "site-packages"))


def environment() -> dict[str, str]:
    """No paths of the repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_contents(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {f"spillway/{path.relative_to(PACKAGE).as_posix()}" for path in files} <= names
    data = {"py.typed", "spark/jvm/log4j2.properties", "spark/jvm/hadoop/yarn-default.xml"}
    assert {f"spillway/{name}" for name in data} <= names
    others = {name for name in names if not name.startswith("spillway/")}
    assert all(".dist-info/" in name for name in others), "tests and examples stay out"


def test_dependencies_are_declared(wheel: Path) -> None:
    """The environment of the tests has more than the wheel asks for, so imports are compared by name."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        requires = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    declared = {re.match(r"[\w.-]+", line)[0].lower() for line in requires if "extra ==" not in line}
    imported = {
        name.split(".")[0]
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imported(node)
    }
    providers = packages_distributions()
    foreign = imported - set(sys.stdlib_module_names) - {"spillway"} - UNDECLARED.keys()
    missing = {name for name in foreign if declared.isdisjoint(map(str.lower, providers[name]))}
    assert not missing, f"pyproject.toml does not name {', '.join(missing)}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def test_the_version_is_told(installed: Path, tmp_path: Path) -> None:
    told = [str(installed / "spillway"), "--version"]
    ran = subprocess.run(told, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert ran.stdout == f"spillway {__version__}\n"
    where = [str(installed / "python"), "-c", "import spillway; print(spillway.__file__)"]
    ran = subprocess.run(where, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(str(installed.parent)), "the package is the installed one"


def test_the_demo_runs(installed: Path, tmp_path: Path) -> None:
    demo = [str(installed / "spillway"), "demo", "--rows", "20000", "--files", "2", "--json"]
    ran = subprocess.run(
        demo, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=DEMO_SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    assert summary["exact"] and summary["complete"] and summary["duckdb_rows"]
    assert (tmp_path / "demo" / "report.html").exists()
