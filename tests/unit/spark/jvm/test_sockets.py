"""Unix-domain sockets where their path is short enough; nothing of dead processes stays."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spillway.spark.jvm.master import parse_master
from spillway.spark.jvm.sockets import DIRECTORY, ENABLED, MOST_PATH_BYTES, socket_settings

HERE = parse_master("local[2]")


@pytest.fixture
def short() -> Iterator[Path]:
    """The directories of pytest have long paths."""
    with tempfile.TemporaryDirectory(prefix="s") as path:
        yield Path(path)


def test_a_private_directory_with_a_short_path(tmp_path: Path, short: Path) -> None:
    long = tmp_path / ("x" * 60)
    long.mkdir()
    settings = socket_settings(HERE, [long, tmp_path / "missing", short])
    found = Path(settings[DIRECTORY])
    assert settings[ENABLED] == "true"
    assert found.parent == short
    assert found.stat().st_mode & 0o777 == 0o700
    assert len(str(found)) + 43 < MOST_PATH_BYTES


def test_tcp_where_every_path_is_too_long(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    assert socket_settings(HERE, [long]) == {ENABLED: "false"}
    assert list(long.iterdir()) == []


def test_executors_elsewhere_use_their_own_directory() -> None:
    assert socket_settings(parse_master("spark://somewhere:7077")) == {ENABLED: "true"}


def test_directories_of_dead_processes_are_removed(short: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = short / f"spillway-sockets-{os.getuid()}-{ended.pid}"
    alive = short / f"spillway-sockets-{os.getuid()}-{os.getppid()}"
    for directory in (dead, alive):
        directory.mkdir()
        (directory / ".x.sock").touch()
    socket_settings(HERE, [short])
    assert alive.exists() and not dead.exists()
