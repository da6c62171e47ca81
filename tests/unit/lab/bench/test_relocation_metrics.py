"""The metrics of the relocation benchmark are plain arithmetic over journals."""

from typing import Any

import pytest

from kit.entries import made_epoch, made_part
from spillway.lab.bench.relocation_metrics import (
    STEADY_EPOCHS,
    WARM_EPOCHS,
    balance_metrics,
    moving_metrics,
    resize_metrics,
    rows_per_s,
    steady_rows_per_s,
)
from spillway.manager.journal.entry import EpochEntry, EpochKind, MoveEntry, RelocationEntry
from spillway.manager.relocation.moves import Load


def entry(
    seconds: float, rows: int = 100, load: int = 0, switched: int = 0, pending: int = 0, **more: Any
) -> EpochEntry:
    relocation = RelocationEntry(
        begun=(move(load),) if load else (),
        loads=(Load(0, 0, 1, load),) if load else (),
        switched=(move(switched),) if switched else (),
    )
    return made_epoch(seconds, input_rows=rows, pending_rows=pending, relocation=relocation, **more)


def move(size: int) -> MoveEntry:
    return MoveEntry(0, 0b1, 0, 1, size, False, "test")


WARM = [entry(100.0)] * WARM_EPOCHS
STILL = [*WARM, *([entry(1.0)] * 8)]
MOVING = [*WARM, *([entry(1.0)] * 6), entry(1.5, load=7, pending=3), entry(1.0, switched=70)]


def test_the_first_epochs_and_those_without_input_do_not_count() -> None:
    assert rows_per_s([*STILL, entry(50.0, rows=0), entry(9.0, kind=EpochKind.CLEANUP)]) == pytest.approx(
        100.0
    )
    assert steady_rows_per_s([entry(9.0)] * 3 + [entry(2.0)] * STEADY_EPOCHS) == pytest.approx(50.0)


def test_moving_is_compared_with_standing_still() -> None:
    metrics = moving_metrics([STILL, STILL], [MOVING, MOVING])
    assert metrics["moving_over_still"] == pytest.approx(8 / 8.5, abs=0.001)
    assert metrics["relocations"] == 2
    assert metrics["moved_bytes"] == [70, 70]
    assert metrics["largest_load_bytes"] == 7
    assert metrics["loading_epoch_ratio"] == 1.5
    assert metrics["pending_rows_max"] == 3


def test_runs_are_compared_with_the_unloaded_one() -> None:
    metrics = balance_metrics({"fast": [entry(1.0)] * 20, "slow": [entry(2.0)] * 20}, "fast")
    assert metrics["steady_over_unloaded"] == {"fast": 1.0, "slow": 0.5}
    assert metrics["rounds"] == {"fast": 0, "slow": 0}


def test_a_resize_counts_its_longest_gap_in_epochs() -> None:
    run = [
        entry(
            1.0,
            switched=5 if number == 12 else 0,
            sequence=number,
            token=1,
            time=number + (0.8 if number > 10 else 0.0),
            processors=(made_part(0),) * (3 if number > 10 else 2),
        )
        for number in range(20)
    ]
    assert resize_metrics(run, [10]) == {
        "resize_processors": [2, 3],
        "resize_pause_epochs": pytest.approx(0.8),
        "resize_relocations": 1,
        "resize_restarts": 0,
    }
