"""Six processors on three executors, which are killed at either end of moves; then the driver is, in a move.

Four ninths of the groups begin on one processor, arrivals favour one half of the groups and then the other,
and some groups are told to move before every epoch. Processors are balanced over the executors, and none
changes its executor unless that was killed: undisturbed, every epoch is compared with the one before; around
a kill the last epoch before it with one that is settled after it, because in between Spark may run a
surviving processor elsewhere for an epoch. Groups are where the placement says, and the answer is DuckDB's.
"""

import os
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from spillway.manager.journal.entry import EpochEntry
from spillway.manager.relocation.moves import Load
from spillway.workload.files import write_streams
from spillway.workload.workload import Alternation, PartitionClass, Workload

pytestmark = pytest.mark.timeout(900)  # a busy machine starts four JVMs in a minute

MASTER = "local-cluster[3,1,1024]"
PROCESSORS, GROUPS, FILES, ROWS = 6, 64, 26, 1_000
UNDISTURBED_EPOCHS = 5
SETTLED_EPOCHS = 2


@pytest.fixture
def alternating_streams(tmp_path: Path) -> Path:
    """A partition is a group; every four files the other half gets ten times the rows."""
    spec = Workload(
        partitions=GROUPS,
        tuple_range=200 * GROUPS,
        classes=(PartitionClass(1),),
        rate_rows_per_second=ROWS,
        alternation=Alternation(period_seconds=4, factor=10),
    )
    write_streams(tmp_path / "alternating", spec, rows=FILES * ROWS, files=FILES)
    return tmp_path / "alternating"


def loads(epochs: list[EpochEntry]) -> list[Load]:
    return [load for epoch in epochs for load in epoch.relocation.loads]


def executors(epoch: EpochEntry) -> list[str]:
    return [one.executor for one in epoch.processors]


def moved(before: EpochEntry, after: EpochEntry, killed: set[str]) -> list[str]:
    """Every change of a processor's executor that no kill explains."""
    pairs = zip(executors(before), executors(after), strict=True)
    return [
        f"epoch {after.sequence}: processor {number} moved from {old} to {new}"
        for number, (old, new) in enumerate(pairs)
        if old != new and old not in killed
    ]


def kill_executor(driver: Any, killed: set[str], role: str | None = None) -> None:
    """Kill the executor of one end of a move that is under way; once settled, all others are where they were.

    Without a role that of the second processor.
    """
    if role is not None:
        begun = len(loads(driver.job.epochs()))
        driver.wait_until(lambda epochs: len(loads(epochs)) > begun)
    before = driver.job.epochs()
    processor = 1 if role is None else getattr(loads(before)[-1], role)
    name = executors(before[-1])[processor]
    os.kill(int(name), signal.SIGKILL)
    killed.add(name)
    driver.wait_epochs(len(before) + SETTLED_EPOCHS)
    after = driver.job.epochs()[len(before) + SETTLED_EPOCHS - 1]
    assert moved(before[-1], after, killed) == []
    assert not killed & set(executors(after))


def check_places(epochs: list[EpochEntry]) -> int:
    """Every group is on the processor that the last placement says, and nowhere else; counts the changes.

    A killed driver may have committed a placement that the journal does not have.
    """
    changes = token = 0
    placement: list[int] | None = None
    for epoch in epochs:
        placement, token = (None if epoch.token != token else placement), epoch.token
        changes += bool(epoch.relocation.switched)
        placement = epoch.placement or placement
        if placement is None:
            continue
        assert len(placement) == GROUPS
        assert set(placement) <= set(range(PROCESSORS))
        for one in epoch.processors:
            assert {placement[group] for group in one.group_rows} <= {one.processor}
    return changes


def test_processors_stay_groups_move_and_all_may_die(
    drivers: Any, alternating_streams: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOVES", "1")
    shares = [4] + [1] * (PROCESSORS - 1)
    lives = drivers(alternating_streams, "delta", MASTER, processors=PROCESSORS, distribution=shares)
    job, killed = lives.job, set[str]()
    armed = job.root / "armed"
    monkeypatch.setenv("ARMED", str(armed))

    first = lives.start("committed", "switch:1")
    first.wait_epochs(UNDISTURBED_EPOCHS)
    undisturbed = job.epochs()
    assert [move for pair in pairwise(undisturbed) for move in moved(*pair, killed)] == []
    assert sorted(Counter(executors(undisturbed[0])).values()) == [2, 2, 2]
    kill_executor(first, killed, "sender")
    kill_executor(first, killed, "receiver")
    armed.touch()
    doomed = first.wait_doomed()  # also the executors, which are in the driver's group on this master
    assert job.committed() == doomed + 1

    second = lives.start("nowhere", "0")
    second.wait_epochs(len(job.epochs()) + 1)
    kill_executor(second, killed)
    summary = second.wait()
    assert summary["exit"] == 0, second.tail()
    assert len(killed) == 3
    assert summary["relocations"] >= 4
    assert check_places(job.epochs()) >= 4
    assert job.difference() == (0, 0)
    second.await_empty_session()
