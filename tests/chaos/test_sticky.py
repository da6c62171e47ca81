"""Six processors on three executors: balanced, and none moves unless its executor was killed.

Undisturbed, every epoch is compared with the one before. Around a kill the last epoch before it is compared
with one that is settled after it: in between, Spark may run a surviving processor elsewhere for an epoch.
"""

import os
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)  # a busy machine starts four JVMs in a minute

MASTER = "local-cluster[3,1,1024]"
UNDISTURBED_EPOCHS = 5
SETTLED_EPOCHS = 2


def executors(epoch: dict[str, Any]) -> list[str]:
    return [one["executor"] for one in epoch["processors"]]


def moved(before: dict[str, Any], after: dict[str, Any], killed: set[str]) -> list[str]:
    """Every change of a processor's executor that no kill explains."""
    pairs = zip(executors(before), executors(after), strict=True)
    return [
        f"epoch {after['sequence']}: processor {number} moved from {old} to {new}"
        for number, (old, new) in enumerate(pairs)
        if old != new and old not in killed
    ]


def kill_executor(driver: Any, processor: int, killed: set[str]) -> None:
    """Kill the executor of a processor; once things have settled, all others are where they were."""
    before = driver.job.epochs()
    name = executors(before[-1])[processor]
    os.kill(int(name), signal.SIGKILL)
    killed.add(name)
    driver.wait_epochs(len(before) + SETTLED_EPOCHS)
    after = driver.job.epochs()[len(before) + SETTLED_EPOCHS - 1]
    assert moved(before[-1], after, killed) == []
    assert not killed & set(executors(after))


def test_processors_stay_and_executors_may_die(drivers: Any, streams: Path) -> None:
    lives = drivers(streams, "delta", MASTER, processors=6)
    job, killed = lives.job, set[str]()

    first = lives.start()
    first.wait_epochs(UNDISTURBED_EPOCHS)
    undisturbed = job.epochs()
    assert [move for pair in pairwise(undisturbed) for move in moved(*pair, killed)] == []
    assert sorted(Counter(executors(undisturbed[0])).values()) == [2, 2, 2]
    kill_executor(first, 0, killed)
    first.kill_group()  # also the executors, which are in the driver's group on this master

    second = lives.start()
    second.wait_epochs(len(job.epochs()) + 1)
    kill_executor(second, 1, killed)
    summary = second.wait()
    assert summary["exit"] == 0, second.tail()
    assert len(killed) == 2
    assert job.difference() == (0, 0)
    second.await_empty_session()
