"""Signals to real commands: they say that they were interrupted, what is missing and how to go on.

Exit codes: 130 after SIGINT and 143 after SIGTERM, unless all results are there all the same.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.timeout(600)

FILES, ROWS, WIDTH_BYTES = 3, 6_000, 1_400


@pytest.fixture
def wide_streams(tmp_path: Path, make_stream: Callable[..., None]) -> Path:
    chance = np.random.default_rng(8)
    for name in "abc":
        make_stream(tmp_path / "wide" / name, chance.integers(0, ROWS, ROWS), FILES, WIDTH_BYTES)
    return tmp_path / "wide"


def cleanups(epochs: list[dict[str, Any]]) -> int:
    return sum(epoch["kind"] == "cleanup" for epoch in epochs)


def interrupt_clean_up(driver: Any, number: signal.Signals, command: str) -> dict[str, Any]:
    """A signal in the middle of clean-up; what the command told of it."""
    before = cleanups(driver.job.epochs())
    driver.wait_until(lambda epochs: cleanups(epochs) > before)
    driver.process.send_signal(number)
    summary: dict[str, Any] = driver.wait()
    assert summary["exit"] == 128 + number, driver.tail()
    assert summary["interrupted"] == number.name
    assert not summary["complete"]
    assert any("between the generations" in one for one in summary["missing"])
    missing, extra = driver.job.difference()
    assert (missing > 0, extra) == (True, 0)
    lines = driver.log.read_text().splitlines()
    assert lines[-1].startswith(f"interrupted by {number.name}: the results are incomplete; missing: ")
    assert lines[-1].endswith(f"To go on: spillway {command} {driver.job.file}")
    assert not any(line.startswith("results: ") for line in lines)
    return summary


def test_a_clean_up_that_is_interrupted_says_what_is_missing(drivers: Any, wide_streams: Path) -> None:
    run = {"processors": 1, "memory": "4MB", "spill": "random", "epoch_rows": 4_000, "epoch_results": 300}
    lives = drivers(wide_streams, "parquet", **run)
    interrupt_clean_up(lives.start(), signal.SIGTERM, "run")
    interrupt_clean_up(lives.start(command="cleanup"), signal.SIGINT, "cleanup")
    last = lives.start()
    summary = last.wait()
    assert summary["exit"] == 0, last.tail()
    assert (summary["complete"], summary["missing"], summary["interrupted"]) == (True, [], None)
    assert lives.job.difference() == (0, 0)


def compute_job(directory: Path) -> Path:
    """All rows of two relations match: 64 million results, more than a minute."""
    table = pa.table({"k": np.zeros(8_000, dtype=np.int64), "id": np.arange(8_000)})
    for name in "ab":
        (directory / name).mkdir()
        pq.write_table(table, directory / name / "0.parquet")
    file = directory / "job.toml"
    file.write_text(
        '[view]\nsql = "SELECT a.id AS p, b.id AS q FROM a JOIN b ON a.k = b.k"\n'
        + "".join(f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\n' for name in "ab")
        + '[compute]\n[sink]\nformat = "parquet"\npath = "out"\n'
    )
    return file


def has_reached(at: str, pid: int, directory: Path) -> bool:
    """Whether the JVM is being launched, or results are being written."""
    if at == "start":
        return bool(psutil.Process(pid).children())
    return any(directory.glob(".out.unfinished-*/**/*.parquet"))


@pytest.mark.parametrize("at", ["start", "write"])
def test_a_computation_that_is_interrupted_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "spillway", "compute", str(compute_job(tmp_path)), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not has_reached(at, process.pid, tmp_path):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, error = process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 143, error
    told = json.loads(output.splitlines()[-1])
    assert (told["interrupted"], told["complete"]) == ("SIGTERM", False)
    assert told["error"] == error.splitlines()[-1]
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.glob(".out.unfinished-*")) == []
