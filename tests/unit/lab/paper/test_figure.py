"""The parameters of the experiments are those of the seeds, and their comparison is plain arithmetic."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from kit.entries import made_epoch, made_part
from spillway.errors import JobError, StateError
from spillway.lab.paper.catalogue import EXPERIMENTS, find_experiment
from spillway.lab.paper.comparison import compare, lines
from spillway.lab.paper.compute import COMPUTE_FIGURES
from spillway.lab.paper.drawing import draw_figure
from spillway.lab.paper.experiment import LEAST, MOST, PARTITIONS, ROW_SECONDS, Variant
from spillway.lab.paper.maintain import MAINTAIN_FIGURES
from spillway.lab.paper.outcome import Outcome, outcome
from spillway.lab.paper.registry import FIGURES
from spillway.lab.paper.reproduction import Reproduction, reproduce
from spillway.lab.paper.tree import TREE_EXPERIMENTS
from spillway.manager.budget import Budget
from spillway.manager.journal.entry import EpochEntry, EpochKind
from spillway.manager.spill import Spill
from spillway.workload.row_slices import count_results

KNOWN = {*COMPUTE_FIGURES, *EXPERIMENTS, *TREE_EXPERIMENTS, *MAINTAIN_FIGURES}
NAMES = ("6.3", "6.4", "6.5", "6.6")
LESS = Variant(LEAST, "least-productive", 0.3)
MORE = Variant(MOST, "most-productive", 0.3)


def test_every_figure_is_registered_with_its_section_and_what_it_says() -> None:
    assert set(FIGURES) == KNOWN
    assert all(one.section and one.shows and one.expected and one.seed for one in FIGURES.values())
    assert all(name.startswith(("table", one.section.split(".")[0] + ".")) for name, one in FIGURES.items())


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_seeds(name: str) -> None:
    chosen = find_experiment(name)
    workload = chosen.workload()
    assert (workload.partitions, workload.tuple_range, chosen.groups) == (300, 30_000, 300)
    assert chosen.rows * ROW_SECONDS / 60 == pytest.approx(50)
    rates = [each.join_ratio for each in workload.classes]
    assert rates == ([4, 2, 1] if name == "6.5" else [3])
    assert all(one.spill_share == 0.3 for one in chosen.variants) or name in ("6.3", "6.4")


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_state_is_several_times_its_memory(name: str, quick: bool) -> None:
    chosen = find_experiment(name, quick=quick)
    payload_bytes = 3 * chosen.rows * chosen.width_bytes
    assert payload_bytes > 3 * Budget(chosen.memory_bytes).state_bytes
    assert chosen.rows / chosen.tuple_range == pytest.approx(100_000 / 30_000)
    assert PARTITIONS % chosen.groups == 0
    assert count_results(chosen.workload(), chosen.rows) > 1_000_000


def test_an_unknown_figure_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"there is no figure 7\.1; known figures: 3\.7, .*, 6\.3, 6\.4"):
        reproduce(Reproduction("7.1", tmp_path, None, False, print))
    with pytest.raises(JobError, match=r"there is no figure 7\.1; known figures: 6\.3, 6\.4"):
        find_experiment("7.1")


def epoch(sequence: int, *, results: int, cleanup: bool = False, spilled: int = 0) -> EpochEntry:
    part = made_part(
        0,
        resident_bytes=70,
        probed_rows=9 if cleanup else 6_000,
        group_bytes={} if cleanup else {0: 40},
        group_results={0: results},
    )
    return made_epoch(
        0.5,
        sequence=sequence,
        kind=EpochKind.CLEANUP if cleanup else EpochKind.EPOCH,
        time=float(sequence),
        results=results,
        processors=(part,),
        spills=(Spill(0, 0b1, spilled, 70, "random"),) if spilled else (),
    )


EPOCHS = (
    epoch(0, results=10),
    epoch(1, results=20, spilled=50),
    epoch(2, results=3, cleanup=True),
    epoch(3, results=5),
    epoch(4, results=7, cleanup=True),
)


def text_of(drawing: Path) -> str:
    return "".join(ET.parse(drawing).getroot().itertext())


def test_an_outcome_is_read_from_the_journal() -> None:
    made = outcome(LESS, EPOCHS)
    assert (made.runtime_results, made.cleanup_results, made.results_total) == (35, 10, 45)
    assert made.early_cleanup_results == 3
    assert (made.runtime_seconds, made.cleanup_seconds) == (1.5, 1.0)
    assert (made.spills, made.spilled_bytes, made.state_bytes) == (1, 50, 120)
    # 2,000 rows of each stream are a minute of arrivals; the clean-up at the end has no place on the axis.
    # What clean-up gave meanwhile is a line of its own.
    assert made.results == ((0, 0), (1, 10), (2, 30), (3, 35))
    assert made.early_cleanup == ((0, 0), (2, 3))
    assert made.restored == ((2, 70),)
    assert made.results_by_clock == ((0, 0), (0.5, 10), (1.5, 30), (2.5, 33), (3.5, 38))
    assert (made.minutes, made.wall_seconds) == (3, 3.5)
    assert made.memory == ((0, 0), (1, 70), (1, 20), (2, 70), (2, 70), (3, 70))


def test_ratios_are_less_over_more_productive() -> None:
    less = outcome(LESS, EPOCHS)
    more = replace(less, variant=MORE, runtime_results=20, cleanup_results=25, cleanup_seconds=4.0)
    figures = compare(find_experiment("6.5"), [less, more], 45)
    assert figures["ratio_least_most"] == 1.75
    assert figures["cleanup_ratio"] == 0.25
    assert figures["runtime_results"] == {LEAST: 35, MOST: 20}
    assert figures["cleanup_results"] == {LEAST: 10, MOST: 25}
    assert figures["results_total"] == 45
    assert "1.75 times the results at run time" in lines(figures)[-1]


def test_runs_that_miss_a_result_are_refused() -> None:
    less = outcome(LESS, EPOCHS)
    with pytest.raises(StateError, match="gave 45 results, the workload has 46"):
        compare(find_experiment("6.5"), [less], 46)


@pytest.mark.parametrize(("name", "axis"), [("6.3", "results (thousands)"), ("6.4", "memory (MB)")])
def test_the_drawing_has_the_axes_and_every_line(tmp_path: Path, name: str, axis: str) -> None:
    chosen = find_experiment(name)
    base = outcome(LESS, EPOCHS)
    outcomes: list[Outcome] = [replace(base, variant=variant) for variant in chosen.variants]
    path = draw_figure(chosen, outcomes, tmp_path / "new")
    text = text_of(path)
    assert path.name == f"figure-{name}.svg"
    for wanted in (axis, "minutes of arrivals", *(variant.label for variant in chosen.variants)):
        assert wanted in text


def test_clean_up_during_the_run_is_drawn_apart(tmp_path: Path) -> None:
    for name in ("6.3", "6.4"):
        text = text_of(draw_figure(find_experiment(name), [outcome(LESS, EPOCHS)], tmp_path))
        assert f"{LEAST}, clean-up during the run" in text
    without = [one for one in EPOCHS if not one.is_cleanup]
    path = draw_figure(find_experiment("6.3"), [outcome(LESS, without)], tmp_path)
    assert "clean-up" not in text_of(path)


@pytest.mark.parametrize("name", ["5.9", "6.12", "6.13"])
def test_what_something_costs_is_drawn_by_the_clock(tmp_path: Path, name: str) -> None:
    chosen = find_experiment(name)
    outcomes = [replace(outcome(LESS, EPOCHS), variant=variant) for variant in chosen.variants]
    text = text_of(draw_figure(chosen, outcomes, tmp_path))
    assert "seconds by the clock" in text
    figures = compare(chosen, outcomes, 45)
    assert all(one["wall_seconds"] == 3.5 for one in figures["variants"].values())
    if name != "5.9":
        assert figures["wall_ratio_to_all_memory"]["All-Mem"] == 1.0
        assert "times the time of All-Mem by the clock" in lines(figures)[-1]


def test_a_run_may_end_for_want_of_memory_where_nothing_is_spilled() -> None:
    chosen = find_experiment("5.10")
    assert {variant.spill for variant in chosen.variants} == {"none"}
    whole = outcome(chosen.variants[-1], EPOCHS)
    cut = outcome(chosen.variants[0], EPOCHS[:2])
    cut = replace(cut, complete=False, stopped="ran out of memory: processor 0 holds 9 bytes")
    figures = compare(chosen, [cut, whole], 45)
    assert figures["variants"]["M_1"]["stopped"] == "ran out of memory: processor 0 holds 9 bytes"
    assert any("ran out of memory" in line for line in lines(figures))
    with pytest.raises(StateError, match="gave 30 results"):
        compare(chosen, [replace(cut, stopped=None), whole], 45)
    with pytest.raises(StateError, match="gave 30 results"):
        compare(chosen, [cut], 29)


def test_active_disk_is_shown_with_its_bound_and_without() -> None:
    for name in ("6.19", "6.20"):
        lazy, active, unbounded = find_experiment(name).variants
        assert (lazy.adapt, active.adapt, unbounded.adapt) == ("lazy-disk", "active-disk", "active-disk")
        assert "query_bytes" not in active.policy
        assert unbounded.policy["query_bytes"] == 1 << 40
        base = outcome(LESS, EPOCHS)
        made = [replace(base, variant=one) for one in (lazy, active, unbounded)]
        made[2] = replace(made[2], runtime_results=30, cleanup_results=15)
        figures = compare(find_experiment(name), made, 45)
        assert figures["ratio_runtime_results"] == 1.0
        assert figures["ratio_runtime_results_unbounded"] == 0.857
        assert "active-disk, no bound against lazy-disk: 0.857 times" in lines(figures)[-1]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="cannot be written"):
        draw_figure(find_experiment("6.3"), [outcome(LESS, EPOCHS)], tmp_path / "file" / "below")
