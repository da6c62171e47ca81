"""Sets of partition groups as bit masks.

A set of groups is an `int` whose bit g stands for group g: union, difference and intersection are `|`,
`& ~` and `&`, it is hashable, and 256 groups fit into 64 hexadecimal digits of a manifest.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from spillway.model.codec import WrittenAs


def to_hex(mask: int) -> str:
    return format(mask, "x")


def from_hex(text: str) -> int:
    return int(text, 16)


def group_set(members: Iterable[int]) -> int:
    mask = 0
    for group in members:
        mask |= 1 << group
    return mask


def members(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


GroupSet = Annotated[int, WrittenAs(str, to_hex, from_hex)]
GroupNumbers = Annotated[int, WrittenAs(tuple[int, ...], members, group_set)]
"""A set of groups that the journal shows to people: written as the list of their numbers."""


def all_groups(groups: int) -> GroupSet:
    return (1 << groups) - 1


def union(masks: Iterable[GroupSet]) -> GroupSet:
    together = 0
    for mask in masks:
        together |= mask
    return together


def placed_on(placement: Sequence[int], processor: int) -> GroupSet:
    """The groups of one processor."""
    return group_set(group for group, owner in enumerate(placement) if owner == processor)
