"""The dissertation's claims about its trees (3.4.2) against the measurements, in words and numbers. Pure.

Each claim is reported for both ways of running, with the reason why it holds or not. The reasons are about
this engine and were measured once (ARCHITECTURE.md, "Computing over stored relations"); the numbers are from
the current runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spillway.lab.bench.compute_metrics import CHOSEN, SQL_TREES, TREES, QueryRuns

DEEP_PIECES, BUSHY_PIECES = "segmented-right-deep", "incremental"
WINS, GAIN, DRAW = 0.9, 0.25, 0.05
"""The share of wins for "almost always", the share of time saved for "about half", and the largest
difference that counts as none."""
COLUMNS_WHY = (
    "There, ten machines redirect every intermediate row over a network and each segment has machines of its "
    "own. Here every task has all hash tables: nothing is redirected, so that there is nothing for shorter "
    "pipelines to save, and what a group other than the last joins, each task joins again"
)
SQL_WHY = (
    "There, ten machines redirect every intermediate row over a network. Here relations of this size are "
    "replicated and a right-deep tree redirects nothing. Any tree has one hash table per join, each a job; "
    "those of a bushy tree's groups have to wait for others, and much of a statement's time is compiling"
)
MEMORY_WHY = (
    "Pieces are statements here; results are written and read either way, and inside a piece hash tables "
    "are replicated, so that bushy pieces save no redirection and two processors are busy either way"
)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Seconds of what the claim says is slow, and of what it says is fast."""

    seconds: tuple[tuple[float, float], ...]

    @property
    def wins(self) -> int:
        return sum(fast < slow for slow, fast in self.seconds)

    @property
    def gain(self) -> float:
        return 1 - sum(fast for _, fast in self.seconds) / sum(slow for slow, _ in self.seconds)

    @property
    def holds(self) -> bool:
        return self.wins > WINS * len(self.seconds) and self.gain > GAIN

    @property
    def text(self) -> str:
        less = f"{abs(self.gain):.0%} {'less' if self.gain >= 0 else 'more'} time in all"
        return f"in {self.wins} of {len(self.seconds)} queries, with {less}"


def claims(runs: Sequence[QueryRuns]) -> list[str]:
    """One or two sentences for each claim that the runs cover."""
    made: list[str] = []
    columns = [query for query in runs if query.columns]
    for where, names, own, why in (
        ("joining columns", TREES, columns, COLUMNS_WHY),
        ("as Spark statements", SQL_TREES, runs, SQL_WHY),
    ):
        made += _shapes(where, names, own, why)
    made += _memory(runs)
    made += _ways(runs)
    return made


def _shapes(where: str, names: Sequence[str], runs: Sequence[QueryRuns], why: str) -> list[str]:
    """Figures 3.8 and 3.9, over all queries and by number of relations."""
    _, deep, bushy = names
    made = _of(runs, lambda query: (query.seconds.get(deep), query.seconds.get(bushy)))
    if made is None:
        return []
    text = f"3.8, 3.9, {where}: segmented bushy beat right-deep {made.text} ({_by_count(runs, deep, bushy)}; "
    text += "dissertation: almost always, about 50 % less)"
    if made.holds:
        return [f"{text}: it holds here"]
    if abs(made.gain) < DRAW:
        return [f"{text}: it does not hold here, they take the same time. {why}"]
    if made.gain > 0:
        return [f"{text}: it holds in part, the gain is smaller. {why}"]
    return [f"{text}: it does not hold here. {why}"]


def _by_count(runs: Sequence[QueryRuns], deep: str, bushy: str) -> str:
    parts = []
    for count in sorted({query.relations for query in runs}):
        own = [query for query in runs if query.relations == count]
        made = _of(own, lambda query: (query.seconds.get(deep), query.seconds.get(bushy)))
        if made is not None:
            parts.append(f"{count} relations: {-made.gain:+.0%}")
    return ", ".join(parts)


def _memory(runs: Sequence[QueryRuns]) -> list[str]:
    """Figure 3.13."""
    short = [query.short_memory for query in runs if query.short_memory is not None]
    pairs = [
        (run.shape_seconds[DEEP_PIECES], run.shape_seconds[BUSHY_PIECES])
        for run in short
        if {DEEP_PIECES, BUSHY_PIECES} <= set(run.shape_seconds)
    ]
    if not pairs:
        return []
    made = _Pairs(tuple(pairs))
    text = (
        f"3.13, memory for a third of the hash tables: bushy pieces beat right-deep pieces {made.text} "
        "(dissertation: always)"
    )
    holds = made.wins == len(pairs) and made.gain > DRAW
    return [f"{text}: it holds here" if holds else f"{text}: it does not hold here. {MEMORY_WHY}"]


def _ways(runs: Sequence[QueryRuns]) -> list[str]:
    """Not in the dissertation: the effect of the way of running, beside that of the shape."""
    made = _of(
        [query for query in runs if query.columns],
        lambda query: (query.seconds.get(SQL_TREES[0]), query.seconds.get(CHOSEN)),
    )
    if made is None:
        return []
    ratio = sum(sql for sql, _ in made.seconds) / sum(columns for _, columns in made.seconds)
    more = "; the way of running matters more than the shape of the tree" if ratio > 1 + GAIN else ""
    text = f"the chosen tree as Spark statements took {ratio:.2f} times as long as joining columns"
    return [f"not in the dissertation: {text}{more}"]


def _of(
    runs: Sequence[QueryRuns], pair: Callable[[QueryRuns], tuple[float | None, float | None]]
) -> _Pairs | None:
    """The pairs of the runs that have both."""
    found = [pair(query) for query in runs]
    both = tuple((slow, fast) for slow, fast in found if slow is not None and fast is not None)
    return _Pairs(both) if both else None
