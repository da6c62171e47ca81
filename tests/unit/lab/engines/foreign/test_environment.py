"""Environments of engines: where they are, when they are made, and what a failure says."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from spillway.errors import JobError
from spillway.lab.engines.foreign import environment
from spillway.lab.engines.foreign.environment import (
    EngineEnvironment,
    cache_directory,
    find_python,
    python_of,
)

HERE = (sys.version_info[0], sys.version_info[1])


def engine(*pythons: tuple[int, int]) -> EngineEnvironment:
    return EngineEnvironment("mill", "1.2", ("mill==1.2",), pythons or (HERE,))


def test_the_cache_is_below_the_home_directory_or_where_the_variable_says(tmp_path: Path) -> None:
    assert cache_directory({"SPILLWAY_CACHE": str(tmp_path)}) == tmp_path
    assert cache_directory({}) == Path.home() / ".cache" / "spillway"
    assert engine().directory({"SPILLWAY_CACHE": str(tmp_path)}) == tmp_path / "engines" / "mill-1.2"


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[str]] = []

    def run(argv: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(argv)
        if "venv" in argv:
            python_of(Path(argv[-1])).parent.mkdir(parents=True)
            python_of(Path(argv[-1])).touch()
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(environment.subprocess, "run", run)
    said: list[str] = []
    environ = {"SPILLWAY_CACHE": str(tmp_path)}
    python = engine().ensure(said.append, environ)
    assert python == tmp_path / "engines" / "mill-1.2" / "bin" / "python" and python.exists()
    assert ran[0][1:3] == ["-m", "venv"] and ran[1][-1] == "mill==1.2"
    assert len(said) == 2 and "mill 1.2" in said[0]
    assert engine().ensure(said.append, environ) == python
    assert len(ran) == 2 and len(said) == 2
    assert [path.name for path in (tmp_path / "engines").iterdir()] == ["mill-1.2"]


def test_a_package_that_cannot_be_installed_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(argv: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        said = "WARNING: slow\nERROR: No matching distribution found for mill==1.2\n\n"
        return subprocess.CompletedProcess(argv, 0 if "venv" in argv else 1, "", said)

    monkeypatch.setattr(environment.subprocess, "run", run)
    with pytest.raises(
        JobError, match=r"No matching distribution found for mill==1\.2; check pip"
    ) as failure:
        engine().ensure(lambda _: None, {"SPILLWAY_CACHE": str(tmp_path)})
    assert "\n" not in str(failure.value)
    assert list((tmp_path / "engines").iterdir()) == []


def test_a_version_of_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert find_python(((1, 5), HERE)) == sys.executable
    assert find_python(((1, 5),)) is None
    with pytest.raises(JobError, match=r"mill 1\.2 needs Python 1\.5"):
        engine((1, 5)).ensure(lambda _: None, {"SPILLWAY_CACHE": str(tmp_path)})


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(environment.subprocess, "run", run)
    with pytest.raises(JobError, match="SPILLWAY_CACHE"):
        engine().ensure(lambda _: None, {"SPILLWAY_CACHE": str(tmp_path)})
