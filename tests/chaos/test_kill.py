"""kill -9 at any point: after restarts the sink holds DuckDB's answer, row for row, no process is left.

Every place in every kind of epoch is in `test_kill_engine`, without Spark; here Spark's own log of batches
and its processes take part.
"""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)  # a busy machine starts a JVM in half a minute

# Where each life ends, in order: a place in the commit of an epoch, or any instant after that many epochs.
LIVES = [("staged", 1), ("committed", 3), ("instant", 5)]
# In the last life, which goes on to the end: workers die after that many epochs, of 14.
WORKER_KILLS = [7, 9, 11]


def test_a_killed_driver_goes_on_where_it_was(drivers: Any, streams: Path) -> None:
    chance = random.Random(3)
    lives = drivers(streams, "delta")
    for place, epoch in LIVES:
        if place == "instant":
            driver = lives.start()
            driver.wait_epochs(epoch)
            time.sleep(chance.uniform(0.0, 0.5))
            driver.kill_group()
            assert lives.job.committed() >= epoch
        else:
            driver = lives.start(place, str(epoch))
            driver.wait_killed()
            assert lives.job.committed() == (epoch if place == "staged" else epoch + 1)
    last = lives.start()
    killed = {kill_worker(last, epoch, chance) for epoch in WORKER_KILLS}
    summary = last.wait()
    assert summary["exit"] == 0, last.tail()
    assert summary["input_rows"] == 21_000
    assert len(killed) == len(WORKER_KILLS)
    assert lives.job.difference() == (0, 0)
    last.await_empty_session()


def kill_worker(driver: Any, epoch: int, chance: random.Random) -> int:
    """Kill a Python worker some instant after so many epochs; its driver needs no restart."""
    driver.wait_epochs(epoch)
    time.sleep(chance.uniform(0.0, 0.3))
    worker: int = chance.choice(driver.workers())
    os.kill(worker, signal.SIGKILL)
    return worker
