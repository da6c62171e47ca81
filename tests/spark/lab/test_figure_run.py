"""A spill experiment on Spark, small: partitions of the workload are groups, and policies see them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spillway import Session
from spillway.lab.paper.catalogue import find_experiment
from spillway.lab.paper.comparison import compare
from spillway.lab.paper.experiment import LEAST, MOST, PARTITIONS
from spillway.lab.paper.run import run_experiment
from spillway.manager.journal.file import FILE_NAME, read_journal
from spillway.report.series import productivity
from spillway.workload.row_slices import count_results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_unproductive_groups_go_first_and_nothing_is_missing(spark: "SparkSession", tmp_path: Path) -> None:
    small = replace(
        find_experiment("6.5", quick=True), rows=8_000, tuple_range=2_400, epochs=4, memory_bytes=8 << 20
    )
    outcomes = run_experiment(Session(spark), small, tmp_path, lambda _line: None)
    metrics = compare(small, outcomes, count_results(small.workload(), small.rows))
    assert list(metrics["runtime_results"]) == [LEAST, MOST]
    assert metrics["ratio_least_most"] > 1
    groups = productivity(tuple(read_journal(tmp_path / "0" / "state" / FILE_NAME)))
    assert [one.group for one in groups] == list(range(PARTITIONS))
    # The classes are the thirds of the groups, in the order of their join rates 4, 2, 1.
    thirds = [groups[start : start + PARTITIONS // 3] for start in range(0, PARTITIONS, PARTITIONS // 3)]
    results = [sum(one.results for one in third) for third in thirds]
    spills = [sum(one.spills for one in third) for third in thirds]
    assert results == sorted(results, reverse=True)
    assert spills == sorted(spills)


def test_a_run_that_may_not_spill_ends_for_want_of_memory(spark: "SparkSession", tmp_path: Path) -> None:
    chosen = find_experiment("5.10", quick=True)
    small = replace(chosen, rows=4_000, tuple_range=1_000, epochs=4, memory_bytes=6 << 20)
    small = replace(small, variants=(chosen.variants[0], chosen.variants[3]))
    outcomes = run_experiment(Session(spark), small, tmp_path, lambda _line: None)
    metrics = compare(small, outcomes, count_results(small.workload(), small.rows))
    cut, whole = outcomes
    assert cut.stopped is not None
    assert "give more memory, or choose a spill strategy" in cut.stopped
    assert 0 < cut.minutes < whole.minutes
    assert (whole.stopped, whole.results_total) == (None, metrics["results_total"])
    assert cut.spills == whole.spills == 0
    assert cut.wall_seconds > 0
