"""The relocation experiments: set-ups of the literature, and what is compared of them."""

from dataclasses import replace

import pytest

from kit.entries import made_epoch, made_part
from spillway.job.run import RunConfig
from spillway.lab.paper.catalogue import EXPERIMENTS, find_experiment
from spillway.lab.paper.comparison import compare, lines
from spillway.lab.paper.experiment import PARTITIONS, Variant
from spillway.lab.paper.outcome import outcome
from spillway.lab.paper.placement import LAZY, NO_RELOCATION, RELOCATION_EXPERIMENTS
from spillway.manager.budget import Budget
from spillway.manager.journal.entry import EpochEntry, MoveEntry, RelocationEntry
from spillway.manager.spill import Spill
from spillway.model.groups import group_set

MOVED = RelocationEntry(switched=(MoveEntry(0, 0b10, 0, 1, 5, False, "test"),))
NAMES = tuple(one.name for one in RELOCATION_EXPERIMENTS)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_variant_is_a_valid_run_of_a_valid_workload(name: str, quick: bool) -> None:
    chosen = find_experiment(name, quick=quick)
    assert chosen.workload().partitions == chosen.groups == PARTITIONS
    for one in chosen.variants:
        Budget(chosen.memory_bytes)
        RunConfig(
            "state",
            processors=one.processors,
            groups=chosen.groups,
            adapt=one.adapt,
            policy=one.policy,
            distribution=one.distribution,
        )


def test_figures_are_known_by_their_numbers() -> None:
    assert {"5.9", "5.10", "6.12", "6.13", "6.14", "6.15", "6.18", "6.19", "6.20"} <= set(EXPERIMENTS)
    ends = [find_experiment("6.20").workload().classes[number] for number in (0, -1)]
    assert [(one.join_ratio, one.tuple_range) for one in ends] == [(4, 15_000), (1, 45_000)]


def epoch(parts: list[dict[int, int]], spilled: tuple[int, ...] = (), **more: object) -> EpochEntry:
    """An epoch in which each processor got rows of groups."""
    return made_epoch(
        1.0,
        input_rows=sum(sum(rows.values()) for rows in parts),
        results=5,
        processors=tuple(
            made_part(number, resident_bytes=10 * number, probed_rows=sum(rows.values()), group_rows=rows)
            for number, rows in enumerate(parts)
        ),
        spills=(Spill(0, group_set(spilled), 1, 10, "test"),) if spilled else (),
        **more,
    )


def test_rows_to_clean_up_belong_to_the_processor_that_has_their_group_at_the_end() -> None:
    skewed = Variant(NO_RELOCATION, processors=2, distribution=(2.0, 1.0))
    still = outcome(skewed, [epoch([{0: 4, 1: 6}, {299: 9}]), epoch([{0: 1}, {299: 1}], (0, 1))])
    assert still.cleanup_rows == (11, 0)
    assert [points[-1][1] for points in still.memory_each] == [0, 10]
    placement = (0, 1, *(0,) * 298)
    moved = outcome(
        replace(skewed, label=LAZY),
        [
            epoch([{0: 4, 1: 6}, {299: 9}]),
            epoch([{0: 1}, {299: 1}], (0, 1), relocation=MOVED, placement=placement),
        ],
    )
    assert moved.cleanup_rows == (5, 6)
    assert moved.relocations == 1
    figures = compare(find_experiment("6.18"), [still, moved], 10)
    assert figures["ratio_runtime_results"] == 1.0
    assert figures["busiest_cleanup_rows_ratio"] == pytest.approx(6 / 11, abs=0.001)
    assert "busiest processor" in lines(figures)[-1]
