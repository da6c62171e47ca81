"""The figures of `bench compute`, from the runs' times alone. Pure.

Ratios are a peer's seconds over the chosen tree's (above 1: the chosen tree is faster), averaged over queries
as a geometric mean and as the ratio of all seconds. A figure whose engine is missing is None. An
engine that did not finish a query has no time in it, and `unfinished` counts those queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from statistics import fmean, median
from typing import Any

CHOSEN = "chosen"
AS_WRITTEN, CBO, DUCKDB = "spark-as-written", "spark-cbo", "duckdb"
TREES = (CHOSEN, "right-deep", "segmented-bushy")
ENGINES = (*TREES, AS_WRITTEN, CBO, DUCKDB)


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

    @property
    def is_within(self) -> bool:
        return self.table_bytes_peak <= self.memory_bytes


@dataclass(frozen=True, slots=True)
class QueryRuns:
    """One query through all engines; the chosen tree's seconds are with its planning."""

    relations: int
    seed: int
    seconds: Mapping[str, float]
    rows: Mapping[str, int]
    planning_seconds: float
    statistics_seconds: float
    q_errors: Sequence[float] = ()
    tree: str = ""
    first_seconds: Mapping[str, float] = field(default_factory=dict)
    """Of each engine's first run of the query, in which Spark compiles its code."""
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    """Processor time, of this process and Spark's."""
    unfinished: Mapping[str, str] = field(default_factory=dict)
    """Engines that failed or were stopped, and why."""
    short_memory: ShortMemory | None = None


def compute_figures(runs: Sequence[QueryRuns]) -> dict[str, Any]:
    """All figures, overall and by number of relations."""
    counts = sorted({one.relations for one in runs})
    by_count = {str(count): _figures([one for one in runs if one.relations == count]) for count in counts}
    return {**_figures(runs), "by_relations": by_count, "claims": claims(runs)}


def _figures(runs: Sequence[QueryRuns]) -> dict[str, Any]:
    engines = [name for name in ENGINES if any(name in one.seconds for one in runs)]
    slower = [excess for one in runs if (excess := over_best(one)) is not None]
    errors = [error for one in runs for error in one.q_errors]
    return {
        "queries": len(runs),
        "unfinished": dict(Counter(name for one in runs for name in one.unfinished)),
        "seconds": {name: _rounded(_mean(runs, name)) for name in engines},
        "cpu_seconds": {
            name: _rounded(fmean(one.cpu_seconds[name] for one in runs if name in one.cpu_seconds))
            for name in engines
            if any(name in one.cpu_seconds for one in runs)
        },
        "first_ratio_spark_as_written": speed_ratio(runs, AS_WRITTEN, first=True),
        "first_ratio_spark_cbo": speed_ratio(runs, CBO, first=True),
        "ratio_spark_as_written": speed_ratio(runs, AS_WRITTEN),
        "ratio_spark_cbo": speed_ratio(runs, CBO),
        "ratio_right_deep": speed_ratio(runs, "right-deep"),
        "ratio_segmented_bushy": speed_ratio(runs, "segmented-bushy"),
        "ratio_duckdb": speed_ratio(runs, DUCKDB),
        "total_ratio_spark_as_written": total_ratio(runs, AS_WRITTEN),
        "total_ratio_spark_cbo": total_ratio(runs, CBO),
        "chosen_over_best_median": _rounded(median(slower)) if slower else None,
        "chosen_over_best_mean": _rounded(fmean(slower)) if slower else None,
        "chosen_over_best_max": _rounded(max(slower)) if slower else None,
        "planning_seconds_max": _rounded(max(one.planning_seconds for one in runs)),
        "statistics_seconds_mean": _rounded(fmean(one.statistics_seconds for one in runs)),
        "q_error_median": _rounded(median(errors)) if errors else None,
        "results_agree": all(len({*one.rows.values(), *_short_rows(one)}) == 1 for one in runs),
        **_short_memory(runs),
        "chosen_trees": sorted({one.tree for one in runs}),
    }


def over_best(one: QueryRuns) -> float | None:
    """The chosen tree's seconds over those of the fastest tree that was measured, all without planning."""
    if CHOSEN not in one.seconds:
        return None
    chosen = one.seconds[CHOSEN] - one.planning_seconds
    return chosen / min([chosen, *(one.seconds[name] for name in TREES[1:] if name in one.seconds)])


def speed_ratio(runs: Sequence[QueryRuns], peer: str, *, first: bool = False) -> float | None:
    measured = [one.first_seconds if first else one.seconds for one in runs]
    ratios = [times[peer] / times[CHOSEN] for times in measured if {peer, CHOSEN} <= set(times)]
    return _rounded(exp(fmean(log(ratio) for ratio in ratios))) if ratios else None


def total_ratio(runs: Sequence[QueryRuns], peer: str) -> float | None:
    """All seconds of the peer over all seconds of the chosen trees, where both ran."""
    both = [one.seconds for one in runs if {peer, CHOSEN} <= set(one.seconds)]
    return _rounded(sum(one[peer] for one in both) / sum(one[CHOSEN] for one in both)) if both else None


def claims(runs: Sequence[QueryRuns]) -> list[str]:
    """What the dissertation says, against what was measured, in words."""
    pairs = [
        (one.seconds["right-deep"], one.seconds["segmented-bushy"])
        for one in runs
        if {"right-deep", "segmented-bushy"} <= set(one.seconds)
    ]
    if not pairs:
        return []
    wins = sum(bushy < deep for deep, bushy in pairs)
    gain = 1 - sum(bushy for _, bushy in pairs) / sum(deep for deep, _ in pairs)
    holds = wins > 0.9 * len(pairs) and gain > 0.25
    text = (
        f"segmented bushy beat right-deep in {wins} of {len(pairs)} queries and took {gain:+.0%} less time "
        "in all (dissertation: almost always, about 50 %)"
    )
    if holds:
        return [f"{text}: it holds here"]
    return [
        f"{text}: it does not hold here. There, ten machines redirect every intermediate row over a network, "
        "and each segment has machines of its own; here relations of this size are replicated to all "
        "processors, so that a right-deep tree redirects nothing, and two processors are busy either way"
    ]


def _short_rows(one: QueryRuns) -> tuple[int, ...]:
    return () if one.short_memory is None else (one.short_memory.rows,)


def _short_memory(runs: Sequence[QueryRuns]) -> dict[str, Any]:
    """With memory for a third of the hash tables: how much of it was used, and how long it took."""
    short = [(one.short_memory, one.seconds.get(CHOSEN)) for one in runs if one.short_memory is not None]
    if not short:
        return {}
    return {
        "short_memory_queries": len(short),
        "short_memory_within_budget": all(one.is_within for one, _ in short),
        "short_memory_used_max": _rounded(max(one.table_bytes_peak / one.memory_bytes for one, _ in short)),
        "short_memory_seconds": _rounded(fmean(one.seconds for one, _ in short)),
    }


def _mean(runs: Sequence[QueryRuns], name: str) -> float:
    return fmean(one.seconds[name] for one in runs if name in one.seconds)


def _rounded(value: float) -> float:
    return round(value, 4)
