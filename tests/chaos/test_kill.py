"""kill -9 at any point: after restarts the sink holds DuckDB's answer, row for row, no process is left.

Every place in every kind of epoch is in `test_kill_engine`, without Spark; here Spark's own log of batches
and its processes take part.
"""

import random
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)  # a busy machine starts a JVM in half a minute

# Where each life ends, in order: a place in the commit of an epoch, or any instant after that many epochs.
LIVES = [("ahead", 1), ("committed", 3), ("instant", 5)]
# In a life that ends with the last epoch, of 14, before it counts: workers die after that many epochs.
WORKER_KILLS = [7, 9, 11]
LAST = 13


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
            assert lives.job.committed() == (epoch if place == "ahead" else epoch + 1)
    check_last(lives)


def test_killed_workers_and_a_driver_killed_in_its_last_epoch_change_nothing(
    drivers: Any, streams: Path
) -> None:
    chance = random.Random(4)
    lives = drivers(streams, "delta")
    driver = lives.start("ahead", str(LAST))
    killed = {kill_worker(driver, epoch, chance) for epoch in WORKER_KILLS}
    assert len(killed) == len(WORKER_KILLS)
    driver.wait_killed()
    assert lives.job.committed() == LAST
    check_last(lives)


def check_last(lives: Any) -> None:
    """A life that goes on to the end; then all results are there."""
    last = lives.start()
    summary = last.wait()
    assert summary["exit"] == 0, last.tail()
    assert summary["input_rows"] == 21_000
    assert lives.job.difference() == (0, 0)
    last.await_empty_session()


def kill_worker(driver: Any, epoch: int, chance: random.Random) -> int:
    """Kill a Python worker some instant after so many epochs; its driver needs no restart."""
    driver.wait_epochs(epoch)
    time.sleep(chance.uniform(0.0, 0.3))
    worker: int = driver.kill_worker(chance)
    return worker
