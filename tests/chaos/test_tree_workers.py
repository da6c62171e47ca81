"""Workers and executors of a tree that die in the middle of an epoch: it is run again, and the answer stays.

Spark repeats a task that died, but no task of a barrier stage, in which the joins of a tree run together.
"""

import os
import random
import re
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
RUN_AGAIN = "is run again"


@pytest.fixture
def keyed_streams(tmp_path: Path, make_stream: Callable[..., None]) -> Path:
    chance = np.random.default_rng(5)
    for name in "abc":
        make_stream(tmp_path / "keyed" / name, chance.integers(0, KEYS, ROWS), FILES)
    return tmp_path / "keyed"


def test_an_epoch_whose_worker_dies_is_run_again_but_not_for_ever(drivers: Any, keyed_streams: Path) -> None:
    lives = drivers(keyed_streams, "parquet", sql=SQL, **SLOWLY)
    driver = lives.start()
    driver.wait_epochs(1)
    chance = random.Random(6)
    while driver.process.poll() is None and RUN_AGAIN not in driver.log.read_text():
        driver.kill_worker(chance)  # it may be an idle one
        time.sleep(0.6)
    assert RUN_AGAIN in driver.log.read_text()
    assert driver.process.poll() is None
    while driver.process.poll() is None:
        for worker in driver.workers():
            os.kill(worker, signal.SIGKILL)
        time.sleep(0.3)
    failure = driver.wait()
    assert failure["exit"] == 1
    assert re.fullmatch(r"epoch [1-4] failed 4 times, at last with: .*", failure["error"])
    assert driver.log.read_text().splitlines()[-1].startswith(f"error: {failure['error']} (details: ")
    assert 1 <= lives.job.committed() < FILES

    last = lives.start()
    summary = last.wait()
    assert summary["exit"] == 0, last.tail()
    assert summary["epochs"] <= FILES  # after a crash, Spark may put two files into one batch
    assert lives.job.difference() == (0, 0)
    last.await_empty_session()


@pytest.mark.parametrize("executors", [1, 2])
def test_an_epoch_whose_executor_dies_is_run_again(drivers: Any, keyed_streams: Path, executors: int) -> None:
    """One executor runs a barrier stage; with two, each level is a stage, of which Spark repeats some."""
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
