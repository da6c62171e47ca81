"""The initial distribution: which processor each group begins on, before anything is known of them.

Even: ranges of equal length, so the hash ranges of a processor are neighbours. By shares: ranges as long as
the shares say, for processors of unequal size and for skewed experiments. By hash: scattered, so that
neighbours, which skewed keys may fill alike, are not on one processor; counts differ by one at most.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import isfinite

from spillway.errors import JobError

EVEN = "even"
BY_HASH = "hash"
Distribution = str | Sequence[float]
_WORD = (1 << 64) - 1


def distributed(distribution: Distribution, groups: int, processors: int) -> tuple[int, ...]:
    """The processor of each group; every processor has at least one."""
    if processors < 1 or groups < processors:
        raise JobError(
            f"[run] processors = {processors}, groups = {groups}: needs a group for each processor"
        )
    if isinstance(distribution, str):
        if distribution == EVEN:
            return tuple(group * processors // groups for group in range(groups))
        if distribution == BY_HASH:
            return _by_hash(groups, processors)
        raise JobError(
            f'[run] distribution = "{distribution}": must be "{EVEN}", "{BY_HASH}" or a list of shares'
        )
    return _by_shares(distribution, groups, processors)


def graph_placement(distribution: Distribution, groups: Sequence[int], processors: int) -> tuple[int, ...]:
    """The same for operators with so many groups each, one after the other.

    Those with fewer groups than there are processors share them out in turn, so some have none of theirs.
    """
    placement: list[int] = []
    dealt = 0
    for own in groups:
        if own >= processors:
            placement += distributed(distribution, own, processors)
        else:
            placement += [(dealt + group) % processors for group in range(own)]
            dealt += own
    return tuple(placement)


def _by_hash(groups: int, processors: int) -> tuple[int, ...]:
    order = sorted(range(groups), key=_mixed)
    placement = [0] * groups
    for place, group in enumerate(order):
        placement[group] = place % processors
    return tuple(placement)


def _mixed(group: int) -> int:
    """The mixing function of splitmix64: every bit of the group's number changes half of the bits."""
    word = (group + 1) * 0x9E3779B97F4A7C15 & _WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return word ^ word >> 31


def _by_shares(shares: Sequence[float], groups: int, processors: int) -> tuple[int, ...]:
    if len(shares) != processors:
        raise JobError(
            f"[run] distribution has {len(shares)} shares for {processors} processors: give one for each"
        )
    if not all(_is_share(share) for share in shares):
        raise JobError(f"[run] distribution = {list(shares)}: every share must be a number above 0")
    total = sum(shares)
    bounds = [round(groups * part / total) for part in accumulate(shares)]
    for place in range(processors):  # a processor without a group would have nothing to do
        least = bounds[place - 1] + 1 if place else 1
        bounds[place] = min(max(bounds[place], least), groups - (processors - 1 - place))
    bounds[-1] = groups
    placement: list[int] = []
    for processor, bound in enumerate(bounds):
        placement.extend([processor] * (bound - len(placement)))
    return tuple(placement)


def _is_share(share: object) -> bool:
    return isinstance(share, int | float) and not isinstance(share, bool) and isfinite(share) and share > 0
