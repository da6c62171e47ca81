"""One key with many rows in every input: results stream out in bounded memory, and no restart repeats one."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from spillway.errors import CheckpointError
from spillway.manager.checkpoint import Checkpoint, Identity
from spillway.state.log.manifest_log import ManifestLog
from spillway.state.storage.storage import Storage

pytestmark = pytest.mark.timeout(600)  # a busy machine starts a JVM in half a minute

WORKERS_RSS_BYTES = 900 << 20
"""All Python workers and their daemon together; the three ids of `RESULTS` results alone would be 1.2 GB."""
RESULTS = 50_000_000


@pytest.fixture
def hot_streams(tmp_path: Path, make_stream: Callable[..., None]) -> Path:
    for name in "abc":
        make_stream(tmp_path / "hot" / name, np.full(1_000, 7), 1)
    return tmp_path / "hot"


def results(job: Any) -> int:
    return sum(epoch.results for epoch in job.epochs())


def watch(driver: Any, until: Callable[[], bool], timeout_seconds: float = 150.0) -> int:
    """The largest memory of all Python workers together, in bytes, seen until something is so."""
    peak, deadline = 0, time.monotonic() + timeout_seconds
    while not until():
        assert driver.process.poll() is None, driver.tail()
        assert time.monotonic() < deadline, f"{results(driver.job)} results: {driver.tail()}"
        held = 0
        for pid, command in driver.members().items():
            if "pyspark.daemon" in command:
                try:
                    held += psutil.Process(pid).memory_info().rss
                except psutil.NoSuchProcess:
                    continue
        peak = max(peak, held)
        time.sleep(0.1)
    return peak


def test_a_billion_results_stream_out_in_bounded_memory(drivers: Any, hot_streams: Path) -> None:
    lives = drivers(hot_streams, "count")
    job = lives.job

    first = lives.start()
    peak = watch(first, lambda: results(job) > RESULTS)
    print(f"peak of the Python workers: {peak >> 20} MiB")
    assert peak < WORKERS_RSS_BYTES
    first.process.send_signal(signal.SIGTERM)
    stopped = first.wait()
    assert stopped["exit"] == 128 + signal.SIGTERM, first.tail()
    assert stopped["results_runtime"] == results(job)
    assert stopped["pending_rows"] > 0

    second = lives.start()
    watch(second, lambda: results(job) > stopped["results_runtime"])
    again = [epoch.sequence for epoch in job.epochs()]
    assert again == list(range(len(again)))

    # While it runs, nobody else may open its checkpoint; and once a newer token is there, it cannot commit.
    with pytest.raises(CheckpointError, match=f"in use by process {second.process.pid}"):
        Checkpoint(str(job.checkpoint), Identity("", "", (), 64))
    ManifestLog(Storage(str(job.checkpoint)))
    fenced_at = job.committed()
    fenced = second.wait()
    assert (fenced["exit"], fenced["kind"]) == (1, "CheckpointError")
    assert f"process {os.getpid()}" in fenced["error"]
    assert job.committed() <= fenced_at + 1  # at most the one that was past the check
