"""Which runs of a processor to merge: those of the same tier, neighbours in the order of runs only.

A run of tier t is made of at least fanout^t runs as epochs wrote them. As soon as there are `fanout` runs of
a tier side by side they become one of a higher tier, for some inputs one or two epochs later: an epoch that
merges all inputs would take much longer than others. So, whatever the sizes, the number of runs stays
logarithmic, each row is rewritten a logarithmic number of times, and the rows of a key keep their order. All
processors count alike, so they merge in the same epochs and do not wait for each other.

Runs beyond a maximal size are left alone: no merge needs more memory than that, and the offsets of a string
column cannot overflow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from spillway.state.rows.expiry import NEVER, Expiry
from spillway.state.rows.run import Run

NO_EXPIRY = Expiry()
STAGGER = 3
"""Inputs that differ by this number may be merged in the same epoch. When runs were still merged by size,
the epoch with the largest merge of 20, six inputs on two processors, merged 26 MB instead of 36 MB."""


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    fanout: int = 6
    """Runs that are merged at a time: a small one probes fewer runs, a large one rewrites less."""
    max_bytes: int = 256 << 20
    """A run of at least half this size is not merged again."""


def choose_merges(
    runs: Sequence[Run], inputs: int, limits: CompactionLimits, expiry: Expiry = NO_EXPIRY
) -> tuple[tuple[str, ...], ...]:
    """The merges to carry out in the next epoch; `runs` are oldest first. At most one per input.

    A run of which much has expired is rewritten alone.
    """
    merges = []
    for number in range(inputs):
        mine = [run for run in runs if run.input == number]
        if chosen := _choose(mine, limits, limits.fanout + number % STAGGER):
            merges.append(tuple(run.name for run in chosen))
    merged = {name for names in merges for name in names}
    due = (
        run for run in runs if run.name not in merged and run.bytes <= limits.max_bytes and expiry.due(run)
    )
    return (*merges, *((run.name,) for run in due))


def superseded(
    runs: Sequence[Run], limits: CompactionLimits, merges: Sequence[Sequence[str]] = ()
) -> tuple[tuple[str, ...], ...]:
    """The run to be swept where newer rows of a key replace older ones, with small neighbours; at most one.

    Runs of other `merges` are left alone, and nothing is merged across them.

    A run is due when since its last sweep as much was added as it holds, so a row is rewritten about once per
    row added; the one that has waited longest comes first. Without this, runs too large for a merge would
    keep what newer runs have replaced, and what is left of them would stay in many small files.
    """
    merged = {name for names in merges for name in names}
    free = [run.name not in merged for run in runs]
    due = [index for index in range(len(runs)) if free[index] and _is_superseded(runs, index, limits)]
    if not due:
        return ()
    low = min(due, key=lambda index: (_swept(runs[index]), index))
    high, size = low + 1, runs[low].bytes
    while low > 0 and free[low - 1] and size + runs[low - 1].bytes <= limits.max_bytes // 2:
        low -= 1
        size += runs[low].bytes
    while high < len(runs) and free[high] and size + runs[high].bytes <= limits.max_bytes // 2:
        size += runs[high].bytes
        high += 1
    return (tuple(run.name for run in runs[low:high]),)


def _is_superseded(runs: Sequence[Run], index: int, limits: CompactionLimits) -> bool:
    run = runs[index]
    fresh = [
        newer
        for newer in runs[index + 1 :]
        if newer.times is not None and newer.times.earliest >= _swept(run)
    ]
    return bool(fresh) and run.bytes <= limits.max_bytes and sum(newer.bytes for newer in fresh) >= run.bytes


def _swept(run: Run) -> int:
    return NEVER if run.times is None else run.times.swept


def _choose(runs: Sequence[Run], limits: CompactionLimits, enough: int) -> Sequence[Run]:
    """The newest runs of one tier, if there are enough: as many as may become one run, oldest first.

    Small runs behind one that is left alone get no newer neighbours, so two of them are enough.
    """
    closed = False
    for is_large, stretch in groupby(reversed(runs), lambda run: run.bytes >= limits.max_bytes // 2):
        if not is_large:
            small = list(stretch)
            for tier in [small] if closed else _tiers(small, limits.fanout):
                if len(tier) >= (2 if closed else enough):
                    sizes = accumulate(run.bytes for run in reversed(tier))
                    fitting = sum(size <= limits.max_bytes for size in sizes)
                    return tier[::-1][:fitting]
        closed = True
    return ()


def _tiers(newest_first: Sequence[Run], fanout: int) -> list[list[Run]]:
    """The runs by tier; one of a lower tier than a newer one counts with that."""
    tiers: list[list[Run]] = []
    reached = -1
    for run in newest_first:
        tier = _tier(run.parts, fanout)
        if tier > reached:
            reached = tier
            tiers.append([])
        tiers[-1].append(run)
    return tiers


def _tier(parts: int, fanout: int) -> int:
    return 0 if parts < fanout else 1 + _tier(parts // fanout, fanout)
