"""Six processors on three executors: balanced, and a processor moves only when its executor was killed."""

import os
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)  # a busy machine starts four JVMs in a minute

MASTER = "local-cluster[3,1,1024]"
UNDISTURBED_EPOCHS = 11


def executors(epoch: dict[str, Any]) -> list[str]:
    return [one["executor"] for one in epoch["processors"]]


def moves(epochs: list[dict[str, Any]], killed: set[str]) -> list[str]:
    """Every change of a processor's executor that no kill explains."""
    found = []
    for before, after in pairwise(epochs):
        for number, (old, new) in enumerate(zip(executors(before), executors(after), strict=True)):
            if old != new and old not in killed:
                found.append(f"epoch {after['sequence']}: processor {number} moved from {old} to {new}")
    return found


def kill_executor(epoch: dict[str, Any], processor: int, killed: set[str]) -> None:
    name = executors(epoch)[processor]
    os.kill(int(name), signal.SIGKILL)
    killed.add(name)


def test_processors_stay_and_executors_may_die(drivers: Any, streams: Path) -> None:
    lives = drivers(streams, "delta", MASTER, processors=6)
    job, killed = lives.job, set[str]()

    first = lives.start()
    first.wait_epochs(UNDISTURBED_EPOCHS)
    undisturbed = job.epochs()
    assert moves(undisturbed, killed) == []
    assert sorted(Counter(executors(undisturbed[0])).values()) == [2, 2, 2]
    for processor in (0, 5):
        kill_executor(job.epochs()[-1], processor, killed)
        first.wait_epochs(len(job.epochs()) + 2)
    first.kill_group()  # also the executors, which are in the driver's group on this master
    life = job.epochs()
    assert moves(life, killed) == []
    assert len(killed) == 2
    assert not killed & set(executors(life[-1]))

    second = lives.start()
    second.wait_epochs(len(life) + 1)
    kill_executor(job.epochs()[-1], 1, killed)
    summary = second.wait()
    assert summary["exit"] == 0, second.tail()
    assert moves(job.epochs()[len(life) :], killed) == []
    assert job.difference() == (0, 0)
    second.await_empty_session()
