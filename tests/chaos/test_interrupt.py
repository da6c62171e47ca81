"""Signals to real commands: they say that they were interrupted, what is missing and how to go on.

Exit codes: 130 after SIGINT and 143 after SIGTERM, unless all results are there all the same.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.manager.journal.entry import EpochEntry
from spillway.spark.jvm.defaults import default_settings
from spillway.spark.jvm.master import parse_master

pytestmark = pytest.mark.timeout(600)

OPTIONS = "spark.driver.extraJavaOptions"
# These runs are short, too: see `JobDirectory.write`.
SPARK = f"""[spark]
"{OPTIONS}" = "{default_settings(parse_master("local"), {})[OPTIONS]} -XX:TieredStopAtLevel=1"
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"""


def cleanups(epochs: list[EpochEntry]) -> int:
    return sum(epoch.is_cleanup for epoch in epochs)


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
    assert lines[-1].endswith(f"To continue: spillway {command} {driver.job.file}")
    assert not any(line.startswith("results: ") for line in lines)
    return summary


def test_a_clean_up_that_is_interrupted_says_what_is_missing(drivers: Any, wide_streams: Path) -> None:
    run = {"processors": 1, "memory": "4MB", "spill": "random", "epoch_rows": 4_000, "epoch_results": 300}
    run |= {"cleanup_latency": "0s"}  # many epochs of clean-up
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
        + SPARK
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


def run_job(directory: Path) -> Path:
    """A view that waits for more input for ever."""
    for name in "ab":
        (directory / name).mkdir()
        pq.write_table(pa.table({"k": np.arange(50), "id": np.arange(50)}), directory / name / "0.parquet")
    file = directory / "job.toml"
    file.write_text(
        '[view]\nsql = "SELECT a.id AS p, b.id AS q FROM a JOIN b ON a.k = b.k"\n'
        + "".join(
            f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\nschema = "k long, id long"\n'
            for name in "ab"
        )
        + '[run]\ncheckpoint = "state"\nuntil = "forever"\n[sink]\nformat = "parquet"\npath = "out"\n'
        + SPARK
    )
    return file


class Started:
    """A command in a process of its own, with the temporary files of its Spark below the job's directory."""

    def __init__(self, command: str, job: Path) -> None:
        self.directory = job.parent
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spillway", command, str(job), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"SPARK_LOCAL_DIRS": str(self.directory / "local")},
        )

    def wait_until(self, at: str) -> None:
        deadline = time.monotonic() + 120
        while not self._has_reached(at):
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _has_reached(self, at: str) -> bool:
        journal = self.directory / "state" / "journal.jsonl"
        match at:
            case "import":
                return "pyarrow" in Path(f"/proc/{self.process.pid}/maps").read_text()
            case "launch":
                return bool(psutil.Process(self.process.pid).children())
            case "session":
                return any(self.directory.glob("local/blockmgr-*"))
            case _:
                return journal.exists() and bool(journal.read_text())

    def ended_by(self, *numbers: signal.Signals) -> list[str]:
        """What a command wrote to standard error that said in one line, and in JSON, which signal it was."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        output, error = self.process.communicate(timeout=60)
        lines = error.splitlines()
        assert self.process.returncode in [128 + number for number in numbers], error
        assert "Traceback" not in error
        number = signal.Signals(self.process.returncode - 128)
        told = json.loads(output.splitlines()[-1])
        assert (told["interrupted"], told["complete"]) == (number.name, False)
        assert told["error"] == lines[-1]
        deadline = time.monotonic() + 20
        while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return lines


@pytest.mark.parametrize(
    ("at", "wait_seconds", "number"),
    [
        ("import", 0.0, signal.SIGINT),
        ("launch", 0.0, signal.SIGINT),
        ("session", 0.5, signal.SIGTERM),
        ("session", 1.5, signal.SIGINT),
    ],
)
def test_a_command_that_starts_is_ended_at_any_moment(
    tmp_path: Path, at: str, wait_seconds: float, number: signal.Signals
) -> None:
    started = Started("run", run_job(tmp_path))
    started.wait_until(at)
    time.sleep(wait_seconds)
    started.process.send_signal(number)
    started.ended_by(number)


def test_a_second_signal_ends_a_run_at_once(tmp_path: Path) -> None:
    started = Started("run", run_job(tmp_path))
    started.wait_until("first epoch")
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        started.process.send_signal(number)  # both are there before either is handled, in any order
    lines = started.ended_by(signal.SIGINT, signal.SIGTERM)
    assert lines[-2].startswith("stopping after the current epoch")


def test_a_run_that_is_complete_when_it_is_stopped_was_not_interrupted(tmp_path: Path) -> None:
    started = Started("run", run_job(tmp_path))
    started.wait_until("first epoch")
    started.process.send_signal(signal.SIGTERM)
    output, error = started.process.communicate(timeout=60)
    assert started.process.returncode == 0, error
    told = json.loads(output.splitlines()[-1])
    assert (told["interrupted"], told["complete"], told["missing"]) == (None, True, [])
    assert "stopped by SIGTERM; all results of the input that was read are there" in error
    assert "again" not in error
