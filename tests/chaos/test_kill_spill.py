"""kill -9 while state is spilled, cleaned up or exchanged: nothing is lost, nothing comes twice."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from spillway.manager.journal.entry import EpochEntry

pytestmark = pytest.mark.timeout(600)  # a busy machine starts a JVM in half a minute

MASTER = "local[2,4]"
# Where each life ends, in order: in the n-th epoch of a kind in that life, or any instant of the clean-up.
LIVES = [("committed", "spill:1"), ("staged", "cleanup:2"), ("instant", "cleanup")]


def cleanups(epochs: list[EpochEntry]) -> int:
    return sum(epoch.is_cleanup for epoch in epochs)


def test_killed_exchange_spill_and_clean_up_change_nothing(drivers: Any, wide_streams: Path) -> None:
    """The first life has rotation; the next ones, without it, end the generations of what is suspended."""
    chance = random.Random(5)
    run = {
        "processors": 1,
        "memory": "4MB",
        "spill": "random",
        "epoch_rows": 4_000,
        "epoch_results": 300,
        "cleanup_latency": "0s",
    }
    lives = drivers(wide_streams, "parquet", MASTER, rotation=True, **run)
    job = lives.job
    doomed = lives.start("sunk", "turn:1").wait_doomed()
    assert job.committed() == doomed + 1
    assert not any(epoch.spills for epoch in job.epochs())
    job.write(run, MASTER)
    for place, epoch in LIVES:
        if place == "instant":
            driver = lives.start()
            before = cleanups(job.epochs())
            driver.wait_until(lambda epochs: cleanups(epochs) > before + 1)  # noqa: B023 - waits here
            time.sleep(chance.uniform(0.0, 0.3))
            driver.kill_group()
        else:
            doomed = lives.start(place, epoch).wait_doomed()
            assert job.committed() == (doomed if place == "staged" else doomed + 1)
    summary = lives.start().wait()
    assert summary["exit"] == 0
    assert summary["spills"] >= 3
    assert cleanups(job.epochs()) >= 4
    assert job.difference() == (0, 0)
    assert summary["results_runtime"] > 0
    assert summary["results_cleanup"] > 0
    assert summary["results_runtime"] + summary["results_cleanup"] == job.expected_results()
