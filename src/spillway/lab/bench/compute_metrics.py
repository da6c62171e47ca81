"""The metrics of `bench compute`, from the runs' times alone. Pure.

Ratios are a peer's seconds over the chosen tree's (above 1: the chosen tree is faster), averaged over queries
as a geometric mean and as the ratio of all seconds. A metric whose engine is missing is None. A peer that was
stopped counts with the time it had: its ratio is then a lower bound, named in `lower_bounds`. A peer that
failed otherwise has no time in that query; `unfinished` counts both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import fmean, median
from typing import Any

CHOSEN = "chosen"
AS_WRITTEN, CBO, DUCKDB = "spark-as-written", "spark-cbo", "duckdb"
TREES = (CHOSEN, "right-deep", "segmented-bushy")
SQL_TREES = tuple(f"{name}-sql" for name in TREES)
"""The same shapes as Spark statements, whatever the chosen way of running is."""
ENGINES = (*TREES, *SQL_TREES, AS_WRITTEN, CBO, DUCKDB)
LEAST_RUNS = 4
"""Warm runs of one tree that are needed to estimate its noise."""


@dataclass(frozen=True, slots=True)
class ShortMemory:
    """One query with memory for a third of its hash tables."""

    memory_bytes: int
    table_bytes_peak: int
    """As Spark measured them: those of one statement together."""
    statements: int
    rows: int
    seconds: float
    tree: str
    shape_seconds: Mapping[str, float] = field(default_factory=dict)
    """One run each of the segmented right-deep tree, and of the same with bushy pieces."""
    stopped_shapes: tuple[str, ...] = ()
    """Those of them that exceeded the time limit."""
    checksum: str = ""
    """The checksum of the results in any order (see `result_sum`), from a run that is not measured."""

    @property
    def is_within(self) -> bool:
        return self.table_bytes_peak <= self.memory_bytes


@dataclass(frozen=True, slots=True)
class QueryRuns:
    """One query in all engines; the chosen tree's seconds include planning."""

    relations: int
    seed: int
    seconds: Mapping[str, float]
    rows: Mapping[str, int]
    """Result counts of the engines that report them."""
    planning_seconds: float
    statistics_seconds: float
    q_errors: Sequence[float] = ()
    tree: str = ""
    first_seconds: Mapping[str, float] = field(default_factory=dict)
    """The time of each engine's first run of the query, in which Spark compiles its code."""
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    """Processor time of this process and Spark's."""
    unfinished: Mapping[str, str] = field(default_factory=dict)
    """Engines that failed or were stopped, and why."""
    stopped: Mapping[str, float] = field(default_factory=dict)
    """Engines that exceeded the time limit, and the limit."""
    all_seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """The time of every run, the first included, without planning."""
    columns: bool = True
    """Whether the trees joined columns; otherwise they ran as Spark statements."""
    short_memory: ShortMemory | None = None
    way: str = ""
    """How `compute` would run the query: by columns, as statements, or by Spark's own plan."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the results of the trees and of DuckDB in any order, from runs that are not measured."""


def compute_metrics(runs: Sequence[QueryRuns]) -> dict[str, Any]:
    """All metrics, overall and by number of relations."""
    counts = sorted({query.relations for query in runs})
    by_count = {
        str(count): _metrics([query for query in runs if query.relations == count]) for count in counts
    }
    return {**_metrics(runs), "by_relations": by_count}


def _metrics(runs: Sequence[QueryRuns]) -> dict[str, Any]:
    engines = [name for name in ENGINES if any(name in query.seconds for query in runs)]
    slower = [excess for query in runs if (excess := over_best(query)) is not None]
    slower_sql = [excess for query in runs if (excess := over_best(query, SQL_TREES)) is not None]
    noises = [found for query in runs if (found := noise(query)) is not None]
    peers = {"ratio_spark_as_written": AS_WRITTEN, "ratio_spark_cbo": CBO, "ratio_duckdb": DUCKDB}
    errors = [error for query in runs for error in query.q_errors]
    return {
        "queries": len(runs),
        "unfinished": dict(Counter(name for query in runs for name in query.unfinished)),
        "stopped": dict(Counter(name for query in runs for name in query.stopped)),
        "lower_bounds": [key for key, peer in peers.items() if any(peer in query.stopped for query in runs)],
        "seconds": {name: _rounded(_mean(runs, name)) for name in engines},
        "cpu_seconds": {
            name: _rounded(fmean(query.cpu_seconds[name] for query in runs if name in query.cpu_seconds))
            for name in engines
            if any(name in query.cpu_seconds for query in runs)
        },
        "first_ratio_spark_as_written": speed_ratio(runs, AS_WRITTEN, first=True),
        "first_ratio_spark_cbo": speed_ratio(runs, CBO, first=True),
        "ratio_spark_as_written": speed_ratio(runs, AS_WRITTEN),
        "ratio_spark_cbo": speed_ratio(runs, CBO),
        "ratio_spark_as_written_with_statistics": speed_ratio(
            [_with_statistics(query) for query in runs], AS_WRITTEN
        ),
        "ratio_right_deep": speed_ratio(runs, "right-deep"),
        "ratio_segmented_bushy": speed_ratio(runs, "segmented-bushy"),
        "ratio_duckdb": speed_ratio(runs, DUCKDB),
        "total_ratio_spark_as_written": total_ratio(runs, AS_WRITTEN),
        "total_ratio_spark_cbo": total_ratio(runs, CBO),
        "chosen_over_best_median": _rounded(median(slower)) if slower else None,
        "chosen_over_best_mean": _rounded(fmean(slower)) if slower else None,
        "chosen_over_best_max": _rounded(max(slower)) if slower else None,
        "same_tree_noise_mean": _rounded(fmean(noises)) if noises else None,
        "same_tree_noise_max": _rounded(max(noises)) if noises else None,
        "sql_over_best_mean": _rounded(fmean(slower_sql)) if slower_sql else None,
        "sql_over_best_max": _rounded(max(slower_sql)) if slower_sql else None,
        "ratio_chosen_sql": speed_ratio(runs, SQL_TREES[0]),
        "planning_seconds_max": _rounded(max(query.planning_seconds for query in runs)),
        "statistics_seconds_mean": _rounded(fmean(query.statistics_seconds for query in runs)),
        "q_error_median": _rounded(median(errors)) if errors else None,
        "results_agree": all(_agrees(query) for query in runs),
        **_short_memory(runs),
        "chosen_trees": sorted({query.tree for query in runs}),
    }


def over_best(query: QueryRuns, trees: Sequence[str] = TREES) -> float | None:
    """The time of the first of `trees` over the fastest measured time, without planning."""
    times = {name: query.seconds[name] for name in trees if name in query.seconds}
    if trees[0] not in times:
        return None
    if trees[0] == CHOSEN:
        times[CHOSEN] -= query.planning_seconds
    return times[trees[0]] / min(times.values())


def noise(query: QueryRuns) -> float | None:
    """`over_best` of two equal trees: from the medians of the odd and the even runs of one tree."""
    seconds = query.all_seconds.get(CHOSEN, ())[1:]
    if len(seconds) < LEAST_RUNS:
        return None
    low, high = sorted((median(seconds[::2]), median(seconds[1::2])))
    return high / low


def _with_statistics(query: QueryRuns) -> QueryRuns:
    """The runs with the time for the chosen tree's statistics added; Spark as written needs none."""
    added = query.statistics_seconds
    return replace(query, seconds={n: s + added if n == CHOSEN else s for n, s in query.seconds.items()})


def seconds_at_least(query: QueryRuns, name: str, *, first: bool = False) -> float | None:
    """An engine's time; if it was stopped, the time it had."""
    return (query.first_seconds if first else query.seconds).get(name, query.stopped.get(name))


def speed_ratio(runs: Sequence[QueryRuns], peer: str, *, first: bool = False) -> float | None:
    both = _both(runs, peer, first=first)
    return _rounded(exp(fmean(log(other / own) for other, own in both))) if both else None


def total_ratio(runs: Sequence[QueryRuns], peer: str) -> float | None:
    """All seconds of the peer over all seconds of the chosen trees, where both ran."""
    both = _both(runs, peer)
    return _rounded(sum(other for other, _ in both) / sum(own for _, own in both)) if both else None


def _both(runs: Sequence[QueryRuns], peer: str, *, first: bool = False) -> list[tuple[float, float]]:
    """Seconds of a peer and of the chosen tree."""
    found = [
        (
            seconds_at_least(query, peer, first=first),
            (query.first_seconds if first else query.seconds).get(CHOSEN),
        )
        for query in runs
    ]
    return [(other, own) for other, own in found if other is not None and own is not None]


def _agrees(query: QueryRuns) -> bool:
    """Whether all results are the same: equal counts and equal checksums."""
    short = [] if query.short_memory is None else [query.short_memory]
    rows = {*query.rows.values(), *(run.rows for run in short)}
    checksums = {*query.checksums.values(), *(run.checksum for run in short)} - {""}
    return len(rows) == 1 and len(checksums) <= 1


def _short_memory(runs: Sequence[QueryRuns]) -> dict[str, Any]:
    """With memory for a third of the hash tables: how much of it was used, and the time."""
    short = [
        (query.short_memory, query.seconds.get(CHOSEN)) for query in runs if query.short_memory is not None
    ]
    if not short:
        return {}
    return {
        "short_memory_queries": len(short),
        "short_memory_within_budget": all(run.is_within for run, _ in short),
        "short_memory_used_max": _rounded(max(run.table_bytes_peak / run.memory_bytes for run, _ in short)),
        "short_memory_seconds": _rounded(fmean(run.seconds for run, _ in short)),
    }


def _mean(runs: Sequence[QueryRuns], name: str) -> float:
    return fmean(query.seconds[name] for query in runs if name in query.seconds)


def _rounded(value: float) -> float:
    return round(value, 4)
