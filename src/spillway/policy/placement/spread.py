"""Spreads all groups evenly over some of the processors: on demand, and when their number changes.

First every group of a processor that is not one of them finds a place, the largest first, each where it is
emptiest. Then groups move from the fullest to the emptiest as long as that makes the two more alike. Full and
empty are measured by all state over capacity, also what is on disk: it comes back when there is room. But no
more goes to a processor than its memory has room for. Groups without state count a little, so that they are
spread by number. Every move makes the sum of squares smaller, so it ends.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot
from spillway.policy.placement.suggestion import Suggestions, move_of

EMPTY_GROUP_BYTES = 1


@dataclass(slots=True)
class _Places:
    """Where groups will be, while it is being worked out."""

    capacity: dict[int, float]
    groups: dict[int, list[PlacedGroup]]
    fixed_bytes: dict[int, int]
    """What does not move, of processors that stay."""
    room: dict[int, float]
    """Memory that is free on each."""
    _load: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._load = {
            processor: self.fixed_bytes[processor] + sum(map(_weight, self.groups[processor]))
            for processor in self.capacity
        }

    def fill(self, processor: int, change: int = 0) -> float:
        return (self._load[processor] + change) / self.capacity[processor]

    def ends(self) -> tuple[int, int]:
        order = sorted(self.capacity, key=lambda processor: (self.fill(processor), processor))
        return order[0], order[-1]

    def emptiest_for(self, group: PlacedGroup) -> int:
        """The emptiest that has room for it; if none has, the emptiest."""
        return min(
            self.capacity,
            key=lambda processor: (not self.has_room(group, processor), self.fill(processor), processor),
        )

    def has_room(self, group: PlacedGroup, processor: int) -> bool:
        return group.resident_bytes <= self.room[processor]

    def put(self, group: PlacedGroup, processor: int) -> None:
        self.groups[processor].append(group)
        self._load[processor] += _weight(group)
        self.room[processor] -= group.resident_bytes

    def take(self, group: PlacedGroup, processor: int) -> None:
        self.groups[processor].remove(group)
        self._load[processor] -= _weight(group)
        self.room[processor] += group.resident_bytes


def spread_groups(snapshot: PlacementSnapshot, onto: Iterable[int], reason: str) -> Suggestions:
    """Moves after which the processors `onto` have everything that can move, evenly."""
    stay = set(onto)
    movable = [group for group in snapshot.groups if group.movable]
    places = _Places(
        capacity={
            processor.processor: processor.capacity
            for processor in snapshot.processors
            if processor.processor in stay
        },
        groups={
            processor: [group for group in movable if group.processor == processor] for processor in stay
        },
        fixed_bytes={
            processor: sum(_weight(group) for group in snapshot.groups_of(processor) if not group.movable)
            for processor in stay
        },
        room={
            processor.processor: processor.room_bytes
            for processor in snapshot.processors
            if processor.processor in stay
        },
    )
    homeless = [group for group in movable if group.processor not in stay]
    for group in sorted(homeless, key=lambda group: (-_weight(group), group.group)):
        places.put(group, places.emptiest_for(group))
    while _levelled(places):
        pass
    moved: dict[tuple[int, int], list[PlacedGroup]] = {}
    for processor, groups in sorted(places.groups.items()):
        for group in groups:
            if group.processor != processor:
                moved.setdefault((group.processor, processor), []).append(group)
    return Suggestions(
        tuple(
            move_of(groups, sender, receiver, reason) for (sender, receiver), groups in sorted(moved.items())
        )
    )


def _levelled(places: _Places) -> bool:
    """Move the group from one of the fullest to the emptiest that brings both furthest below the fullest."""
    least, most = places.ends()
    full = places.fill(most)
    fits = (
        (gain, -group.group, processor, group)
        for processor in places.capacity
        if places.fill(processor) == full  # others may be as full, and have what the last one has not
        for group in places.groups[processor]
        if places.has_room(group, least)
        and (gain := -max(places.fill(least, _weight(group)), places.fill(processor, -_weight(group))))
        > -full
    )
    best = max(fits, key=lambda found: found[:2], default=None)
    if best is None:
        return False
    _, _, processor, group = best
    places.take(group, processor)
    places.put(group, least)
    return True


def _weight(group: PlacedGroup) -> int:
    return group.total_bytes + EMPTY_GROUP_BYTES
