"""Snapshots as values: what they contain is what PostgreSQL says, for any ids."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spillway.maintain.sources.postgres.snapshot import Snapshot


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    low = draw(st.integers(1, 40))
    high = draw(st.integers(low, 50))
    running = draw(st.sets(st.integers(low, high - 1))) if high > low else set()
    return Snapshot.read(f"{low}:{high}:{','.join(map(str, sorted(running)))}")


def contained(snapshot: Snapshot) -> set[int]:
    """As PostgreSQL defines it, one id at a time."""
    return {
        one
        for one in range(1, 60)
        if one < snapshot.low or (one < snapshot.high and one not in snapshot.running)
    }


@given(snapshots())
def test_what_a_snapshot_sees(snapshot: Snapshot) -> None:
    ids = np.arange(1, 60)
    assert set(ids[snapshot.sees(ids)]) == contained(snapshot)


@given(snapshots(), snapshots())
def test_one_snapshot_in_another(one: Snapshot, other: Snapshot) -> None:
    if one.contains(other):
        assert contained(one) >= contained(other)
    if contained(one) >= contained(other) and one.high >= other.high:
        assert one.contains(other)


@given(st.integers(2**31, 2**60), st.lists(st.integers(-(2**31) + 1, 2**31 - 1)))
def test_ids_get_their_upper_half_back(high: int, distances: list[int]) -> None:
    full = np.array([high + distance for distance in distances], np.int64)
    assert (Snapshot(high, high, frozenset()).widened(full & 0xFFFF_FFFF) == full).all()
