"""Sets of partition groups as bit masks.

A set of groups is an `int` whose bit g stands for group g: union, difference and intersection are `|`,
`& ~` and `&`, it is hashable, and 256 groups fit into 64 hexadecimal digits of a manifest.
"""

from collections.abc import Iterable, Iterator, Sequence

GroupSet = int


def all_groups(groups: int) -> GroupSet:
    return (1 << groups) - 1


def group_set(members: Iterable[int]) -> GroupSet:
    mask = 0
    for group in members:
        mask |= 1 << group
    return mask


def union(masks: Iterable[GroupSet]) -> GroupSet:
    together = 0
    for mask in masks:
        together |= mask
    return together


def placed_on(placement: Sequence[int], processor: int) -> GroupSet:
    """The groups of one processor."""
    return group_set(group for group, owner in enumerate(placement) if owner == processor)


def members(mask: GroupSet) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def to_hex(mask: GroupSet) -> str:
    return format(mask, "x")


def from_hex(text: str) -> GroupSet:
    return int(text, 16)
