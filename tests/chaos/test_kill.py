"""kill -9 at any point: after restarts the sink holds DuckDB's answer, row for row, no process is left."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)  # a busy machine starts a JVM in half a minute

# Where each life ends, in order: a place in the commit of an epoch, or any instant after that many epochs.
LIVES = {
    "delta": [("staged", 2), ("instant", 6), ("committed", 11)],
    "parquet": [("committed", 2), ("instant", 6), ("sunk", 10)],
}


@pytest.mark.parametrize("sink", sorted(LIVES))
def test_a_killed_driver_goes_on_where_it_was(sink: str, drivers: Any, streams: Path) -> None:
    chance = random.Random(sink)
    lives = drivers(streams, sink)
    for place, epoch in LIVES[sink]:
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
    summary = lives.start().wait()
    assert summary["exit"] == 0
    assert summary["input_rows"] == 66_000
    assert lives.job.difference() == (0, 0)


def test_a_killed_worker_needs_no_restart(drivers: Any, streams: Path) -> None:
    chance = random.Random(4)
    driver = drivers(streams, "delta").start()
    killed = []
    for epoch in (2, 6, 11):
        driver.wait_epochs(epoch)
        time.sleep(chance.uniform(0.0, 0.3))
        workers = driver.workers()
        killed.append(chance.choice(workers))
        os.kill(killed[-1], signal.SIGKILL)
    summary = driver.wait()
    assert summary["exit"] == 0, driver.tail()
    assert len(set(killed)) == 3
    assert driver.job.difference() == (0, 0)
    driver.await_empty_session()
