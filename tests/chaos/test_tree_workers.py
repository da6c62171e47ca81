"""Workers and executors of a tree die in the middle of an epoch: Spark repeats tasks, the answer stays."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.timeout(600)

FILES, ROWS, KEYS = 4, 1_200, 400
SQL = (
    "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, a.p AS p FROM a, b, c "
    f"WHERE a.k = b.k AND b.id % {KEYS} = c.k"
)
SLOWLY = {"emulate.row_seconds": 0.002}
"""An epoch takes about a second, most of it inside the tasks."""


@pytest.fixture
def keyed_streams(tmp_path: Path, make_stream: Callable[..., None]) -> Path:
    chance = np.random.default_rng(5)
    for name in "abc":
        make_stream(tmp_path / "keyed" / name, chance.integers(0, KEYS, ROWS), FILES)
    return tmp_path / "keyed"


def test_a_worker_that_dies_is_replaced_by_spark_but_not_for_ever(drivers: Any, keyed_streams: Path) -> None:
    lives = drivers(keyed_streams, "parquet", sql=SQL, **SLOWLY)
    driver = lives.start()
    driver.wait_epochs(1)
    chance = random.Random(6)
    for _ in range(4):
        driver.kill_worker(chance)  # it may be an idle one
        time.sleep(0.6)
    assert driver.process.poll() is None, driver.tail()
    while driver.process.poll() is None:
        for worker in driver.workers():
            os.kill(worker, signal.SIGKILL)
        time.sleep(0.3)
    failure = driver.wait()
    if failure["exit"] == 0:  # it was faster
        assert lives.job.difference() == (0, 0)
        return
    assert failure["exit"] == 1
    assert "\n" not in failure["error"]
    last = lives.start()
    summary = last.wait()
    assert summary["exit"] == 0, last.tail()
    assert lives.job.difference() == (0, 0)
    last.await_empty_session()


@pytest.mark.parametrize("executors", [1, 2])
def test_an_executor_that_dies_changes_nothing(drivers: Any, keyed_streams: Path, executors: int) -> None:
    """With two, tasks of a level may have read what the lost one sent in the level before."""
    lives = drivers(
        keyed_streams, "parquet", f"local-cluster[{executors},{3 - executors},1024]", sql=SQL, **SLOWLY
    )
    driver = lives.start()
    driver.wait_epochs(2)
    time.sleep(0.6)
    os.kill(int(lives.job.epochs()[-1].processors[0].executor), signal.SIGKILL)
    summary = driver.wait()
    assert summary["exit"] == 0, driver.tail()
    assert lives.job.difference() == (0, 0)
    assert summary["epochs"] == FILES
    driver.await_empty_session()
