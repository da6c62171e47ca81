"""A storm of kills: workers, executors and drivers of a tree of joins that spills and moves groups.

Takes minutes, so only `make nightly` and whoever names it run it.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.timeout(1800), pytest.mark.nightly]

KILLS = 30
FILES, ROWS, KEYS, WIDTH_BYTES = 30, 6_000, 2_500, 1_200
SQL = (
    "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, a.p AS p FROM a, b, c "
    f"WHERE a.k = b.k AND b.id % {KEYS} = c.k"
)
RUN = {
    "processors": 3,
    "memory": "5MB",
    "spill_share": 0.5,
    "adapt": "lazy-disk",
    "distribution": [0.6, 0.2, 0.2],
    "emulate.row_seconds": 0.0005,
}


@pytest.fixture
def stormy_streams(tmp_path: Path, make_stream: Callable[..., None]) -> Path:
    chance = np.random.default_rng(13)
    for name in "abc":
        make_stream(tmp_path / "stormy" / name, chance.integers(0, KEYS, ROWS), FILES, WIDTH_BYTES)
    return tmp_path / "stormy"


def executors(driver: Any) -> list[int]:
    found = driver.members().items()
    return [pid for pid, command in found if "CoarseGrainedExecutorBackend" in command and "java" in command]


@pytest.mark.parametrize("seed", [1])
def test_thirty_kills_change_nothing(drivers: Any, stormy_streams: Path, seed: int) -> None:
    chance = random.Random(seed)
    lives = drivers(stormy_streams, "parquet", "local-cluster[2,2,1024]", sql=SQL, **RUN)
    kills: dict[str, int] = {"worker": 0, "executor": 0, "driver": 0}
    driver = lives.start()
    while sum(kills.values()) < KILLS and driver.process.poll() is None:
        time.sleep(chance.uniform(0.2, 1.5))
        kind = chance.choices(list(kills), [6, 2, 1])[0]
        victims = {"worker": driver.workers, "executor": lambda: executors(driver)}.get(kind)  # noqa: B023
        if victims is None:
            driver.kill_group()
            driver = lives.start()
            driver.wait_until(lambda epochs: len(epochs) > driver.started_epochs)  # noqa: B023
        elif found := victims():
            try:
                os.kill(chance.choice(found), signal.SIGKILL)
            except ProcessLookupError:
                continue
        else:
            continue
        kills[kind] += 1
    outcome = driver.wait()
    while outcome["exit"] != 0:  # more tasks died than Spark repeats
        driver = lives.start()
        outcome = driver.wait()
    print(kills, {key: outcome[key] for key in ("epochs", "spills", "relocations", "results_cleanup")})
    assert lives.job.difference() == (0, 0)
    assert sum(kills.values()) >= KILLS // 2
    assert outcome["spills"] > 0 and outcome["results_cleanup"] > 0
