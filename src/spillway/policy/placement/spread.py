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

    def emptiest_for(self, one: PlacedGroup) -> int:
        """The emptiest that has room for it; if none has, the emptiest."""
        return min(
            self.capacity,
            key=lambda processor: (not self.has_room(one, processor), self.fill(processor), processor),
        )

    def has_room(self, one: PlacedGroup, processor: int) -> bool:
        return one.resident_bytes <= self.room[processor]

    def put(self, one: PlacedGroup, processor: int) -> None:
        self.groups[processor].append(one)
        self._load[processor] += _weight(one)
        self.room[processor] -= one.resident_bytes

    def take(self, one: PlacedGroup, processor: int) -> None:
        self.groups[processor].remove(one)
        self._load[processor] -= _weight(one)
        self.room[processor] += one.resident_bytes


def spread_groups(snapshot: PlacementSnapshot, onto: Iterable[int], reason: str) -> Suggestions:
    """Moves after which the processors `onto` have everything that can move, evenly."""
    stay = set(onto)
    movable = [one for one in snapshot.groups if one.movable]
    places = _Places(
        capacity={one.processor: one.capacity for one in snapshot.processors if one.processor in stay},
        groups={processor: [one for one in movable if one.processor == processor] for processor in stay},
        fixed_bytes={
            processor: sum(_weight(one) for one in snapshot.groups_of(processor) if not one.movable)
            for processor in stay
        },
        room={one.processor: one.room_bytes for one in snapshot.processors if one.processor in stay},
    )
    homeless = [one for one in movable if one.processor not in stay]
    for one in sorted(homeless, key=lambda one: (-_weight(one), one.group)):
        places.put(one, places.emptiest_for(one))
    while _levelled(places):
        pass
    moved: dict[tuple[int, int], list[PlacedGroup]] = {}
    for processor, groups in sorted(places.groups.items()):
        for one in groups:
            if one.processor != processor:
                moved.setdefault((one.processor, processor), []).append(one)
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
        (gain, -one.group, processor, one)
        for processor in places.capacity
        if places.fill(processor) == full  # others may be as full, and have what the last one has not
        for one in places.groups[processor]
        if places.has_room(one, least)
        and (gain := -max(places.fill(least, _weight(one)), places.fill(processor, -_weight(one)))) > -full
    )
    best = max(fits, key=lambda found: found[:2], default=None)
    if best is None:
        return False
    _, _, processor, one = best
    places.take(one, processor)
    places.put(one, least)
    return True


def _weight(one: PlacedGroup) -> int:
    return one.total_bytes + EMPTY_GROUP_BYTES
