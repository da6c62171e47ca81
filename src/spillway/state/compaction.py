"""Which runs of a processor to merge: size-tiered, adjacent in age only.

The newest runs of an input, as far back as each is no larger than all newer ones together, become one run
as soon as there are `fanout` of them. So the number of runs stays logarithmic, each row is rewritten a
logarithmic number of times, and the rows of a key keep their order of age. Runs beyond a maximal size are
left alone: no merge needs more memory than that, and the offsets of a string column cannot overflow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.state.expiry import Expiry
from spillway.state.run import Run

NO_EXPIRY = Expiry()


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    fanout: int = 4
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
        if chosen := _choose(mine, limits):
            merges.append(tuple(run.name for run in chosen))
    merged = {name for names in merges for name in names}
    due = (
        run for run in runs if run.name not in merged and run.bytes <= limits.max_bytes and expiry.due(run)
    )
    return (*merges, *((run.name,) for run in due))


def superseded(runs: Sequence[Run], limits: CompactionLimits) -> tuple[tuple[str, ...], ...]:
    """The oldest run worth rewriting alone where newer rows of a key replace older ones, if there is one.

    It is when since its last sweep as much was added as it holds, so a row is rewritten about once per row
    added. Without this, runs too large for a merge would keep what newer runs have replaced.
    """
    for run in runs:
        if run.times is None or run.bytes > limits.max_bytes:
            continue
        newer = [one for one in runs if one.first_epoch > run.last_epoch]
        fresh = [one for one in newer if one.times is not None and one.times.earliest >= run.times.swept]
        if fresh and sum(one.bytes for one in fresh) >= run.bytes:
            return ((run.name,),)
    return ()


def _choose(runs: Sequence[Run], limits: CompactionLimits) -> Sequence[Run]:
    """The longest suffix in which each run is at most as large as all newer ones together, if it is due."""
    start = len(runs)
    newer = 0
    while start > 0:
        candidate = runs[start - 1]
        if candidate.bytes >= limits.max_bytes // 2 or newer + candidate.bytes > limits.max_bytes:
            break
        if newer and candidate.bytes > newer:
            break
        newer += candidate.bytes
        start -= 1
    suffix = runs[start:]
    return suffix if len(suffix) >= limits.fanout else ()
