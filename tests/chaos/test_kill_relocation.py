"""kill -9 of sender, receiver and driver while groups are on the move, on three executors: the same answer.

Two thirds of the groups begin on one processor, arrivals favour one half of the groups and then the other,
and some groups are told to move before every epoch.
"""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from spillway.workload import Alternation, PartitionClass, Workload, write_streams

pytestmark = pytest.mark.timeout(600)  # a busy machine starts four JVMs in a minute

MASTER = "local-cluster[3,1,1024]"
GROUPS, FILES, ROWS = 64, 22, 1_000


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


def loads(epochs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [load for epoch in epochs for load in epoch["relocation"]["loads"]]


def kill_executor_of_a_move(driver: Any, role: str) -> None:
    """Kill the executor of one end of a move that is under way, and wait until epochs go on."""
    before = len(loads(driver.job.epochs()))
    driver.wait_until(lambda epochs: len(loads(epochs)) > before)
    epochs = driver.job.epochs()
    processor = loads(epochs)[-1][role]
    os.kill(int(epochs[-1]["processors"][processor]["executor"]), signal.SIGKILL)
    driver.wait_epochs(len(epochs) + 2)


def check_places(epochs: list[dict[str, Any]], groups: int, processors: int) -> int:
    """Every group is on the processor that the last placement says, and nowhere else; counts the changes.

    A killed driver may have committed a placement that the journal does not have.
    """
    changes = token = 0
    placement: list[int] | None = None
    for epoch in epochs:
        placement, token = (None if epoch["token"] != token else placement), epoch["token"]
        changes += bool(epoch["relocation"]["switched"])
        placement = epoch["placement"] or placement
        if placement is None:
            continue
        assert len(placement) == groups
        assert set(placement) <= set(range(processors))
        for one in epoch["processors"]:
            assert {placement[int(group)] for group in one["group_rows"]} <= {one["processor"]}
    return changes


def test_a_killed_move_changes_nothing(
    drivers: Any, alternating_streams: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOVES", "1")
    lives = drivers(alternating_streams, "delta", MASTER, processors=3, distribution=[4, 1, 1])
    job = lives.job
    armed = job.root / "armed"
    monkeypatch.setenv("ARMED", str(armed))
    first = lives.start("committed", "switch:2")
    first.wait_epochs(2)
    kill_executor_of_a_move(first, "sender")
    kill_executor_of_a_move(first, "receiver")
    armed.touch()
    doomed = first.wait_doomed()
    assert job.committed() == doomed + 1
    summary = lives.start("nowhere", "0").wait()
    assert summary["exit"] == 0
    assert summary["relocations"] >= 6
    assert check_places(job.epochs(), groups=GROUPS, processors=3) >= 6
    assert job.difference() == (0, 0)
