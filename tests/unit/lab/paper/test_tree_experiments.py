"""The figures of trees: the workload keeps its ratios, and the comparison its words."""

from dataclasses import replace

import duckdb
import numpy as np
import pytest

from spillway.errors import JobError, StateError
from spillway.lab.paper.experiment import Variant
from spillway.lab.paper.outcome import Outcome
from spillway.lab.paper.tree import (
    GLOBAL,
    LOCAL,
    PAPER,
    PENALTY,
    TREE_EXPERIMENTS,
    compare_strategies,
    tree_experiment,
    tree_lines,
)
from spillway.manager.budget import Budget
from spillway.policy.spill.registry import default_spill, default_spill_share
from spillway.workload.group_key import partition_of
from spillway.workload.tree_workload import VIEW, TreeWorkload


def outcome(
    label: str, runtime: int, cleanup: int, groups: tuple[int, ...] = (1, 1, 301), spilled: int = 4_000_000
) -> Outcome:
    return Outcome(
        Variant(label, label), runtime, cleanup, 0, 1.0, 2.0, 3, spilled, 9_000_000,
        ((0.0, 0.0),), ((0.0, 0.0),), spilled_groups=groups,
    )  # fmt: skip


def test_ratios_are_of_averages_over_seeds() -> None:
    chosen = tree_experiment("7.13")
    first = [outcome(PENALTY, 300, 100), outcome(GLOBAL, 200, 200), outcome(LOCAL, 100, 300)]
    second = [outcome(PENALTY, 500, 0), outcome(GLOBAL, 400, 100), outcome(LOCAL, 300, 200)]
    figures = compare_strategies(chosen, [first, second], [400, 500])
    assert figures["ratio_to_penalty"] == {PENALTY: 1.0, GLOBAL: 1.333, LOCAL: 2.0}
    assert figures["ratio_global"] == {LOCAL: 1.5}
    assert figures["spilled_groups_by_join"][PENALTY] == [2, 1]
    assert any("penalty over local-output: 2.0 times" in line for line in tree_lines(figures))


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", sorted(TREE_EXPERIMENTS))
def test_every_strategy_frees_the_same_share_per_spill_and_says_so(name: str, quick: bool) -> None:
    chosen = tree_experiment(name, quick=quick)
    assert {one.spill_share for one in chosen.variants} == {default_spill_share(rotation=False)}
    assert chosen.variants[0].spill == default_spill(tree=True)
    made = [replace(outcome(one.label, 300, 100), freed_share=0.104) for one in chosen.variants]
    figures = compare_strategies(chosen, [made], [400])
    assert figures["spill_share"] == 0.1
    assert set(figures["freed_share"].values()) == {0.104}
    text = tree_lines(figures)
    assert "every spill frees 10% of a processor's state" in text[0]
    assert all("spills of 10.4% each" in line for line in text[1 : 1 + len(made)])


@pytest.mark.parametrize("name", sorted(TREE_EXPERIMENTS))
def test_quick_rows_are_wider_where_the_smallest_budget_is_more_than_a_fifth(name: str) -> None:
    """A fifth of the memory for a fifth of the state: else nothing would be spilled."""
    whole, quick = tree_experiment(name), tree_experiment(name, quick=True)
    assert quick.memory_bytes / quick.width_bytes == pytest.approx(
        whole.memory_bytes / 5 / whole.width_bytes, rel=0.02
    )
    Budget(quick.memory_bytes)


def test_the_published_formula_is_compared_with_global_output() -> None:
    made = [outcome(PENALTY, 300, 100), outcome(PAPER, 100, 300), outcome(GLOBAL, 200, 200)]
    figures = compare_strategies(tree_experiment("7.14"), [made], [400])
    assert figures["ratio_paper_to_global"] == 0.5
    assert f"{PAPER} over {GLOBAL}: 0.5 times the results at run time" in tree_lines(figures)


def test_a_wrong_number_of_results_is_no_figure() -> None:
    with pytest.raises(StateError, match="seed 0"):
        compare_strategies(tree_experiment("7.13"), [[outcome(PENALTY, 1, 1)]], [3])


@pytest.mark.parametrize(
    ("groups", "spilled", "words"),
    [
        (
            (1, 1, 301),
            4_000_000,
            "both ended nearly the same groups (spilled groups by join 67%/33%",
        ),
        ((2, 3, 4, 302), 4_000_000, "67%/33% against 75%/25%, 0% of the groups the same, 4 MB against 4 MB"),
        ((2, 3, 4, 5), 3_000_000, "had to spill more, groups above, which the groups kept below had filled"),
        ((2, 3, 4, 5), 4_000_000, "kept groups of the lowest join, and results ended at the joins above"),
        ((302, 303), 4_000_000, "ended groups of the lowest join, through which all results come"),
    ],
)
def test_what_is_not_as_expected_is_explained(groups: tuple[int, ...], spilled: int, words: str) -> None:
    made = [outcome(PENALTY, 120, 80), outcome(LOCAL, 100, 100, groups, spilled)]
    figures = compare_strategies(tree_experiment("7.13"), [made], [200])
    (line,) = figures["reasons"]
    assert line.startswith("global-output-penalty over local-output is 1.20, not 1.3")
    assert words in line
    assert tree_lines(figures)[-1] == line


def test_what_is_as_expected_needs_no_reason() -> None:
    made = [outcome(PENALTY, 140, 60), outcome(LOCAL, 100, 100)]
    assert compare_strategies(tree_experiment("7.13"), [made], [200])["reasons"] == []


def test_a_run_that_was_stopped_has_fewer_results_and_no_clean_up() -> None:
    whole = [outcome(PENALTY, 140, 60), outcome(LOCAL, 100, 100)]
    cut = [replace(one, complete=False, cleanup_seconds=0.1) for one in whole]
    figures = compare_strategies(tree_experiment("7.13"), [whole, cut], [200, 220])
    assert figures["cleanup_seconds"] == {PENALTY: 2.0, LOCAL: 2.0}
    with pytest.raises(StateError, match="seed 1"):
        compare_strategies(tree_experiment("7.13"), [whole, cut], [200, 190])


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(JobError, match=r"7\.13"):
        tree_experiment("7.99")


@pytest.mark.parametrize("name", sorted(TREE_EXPERIMENTS))
def test_every_experiment_has_a_workload_with_results(name: str) -> None:
    made = tree_experiment(name, quick=True).workload(1)
    with duckdb.connect() as database:
        for stream in "abcde":
            database.register(stream, made.piece(stream, 0, made.rows))
        ((count,),) = database.sql(f"SELECT count(*) FROM ({VIEW})").fetchall()
    assert count > 1000


def test_what_a_partition_produces_says_little_about_what_becomes_of_it() -> None:
    """Rows of odd partitions of the first column have values of the later half of the second."""
    made = TreeWorkload(("2", "2", "2"), 3_600, 1_800)
    rows = made.piece("c", 0, 3_600)
    x, y = (partition_of(rows.column(name).to_numpy(), 300) for name in ("x", "y"))
    assert np.mean(y[x % 2 == 1]) > np.mean(y[x % 2 == 0]) + 100
    assert len(np.unique(rows.column("y").to_numpy())) > 500
