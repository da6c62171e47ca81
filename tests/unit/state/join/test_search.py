"""The search for hashes in segments, against counting."""

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.state.join.search import expanded, rows_per_needle, search
from spillway.state.rows.group import flags, group_of
from spillway.state.rows.hash_filter import HashFilter
from spillway.state.rows.sorted_rows import SortedRows, rows_only

GROUPS = 8
HASHES = [-(2**63), -(2**62), -5, -1, 0, 1, 7, 2**61, 2**63 - 1]


def segment(hashes: list[int], live: int, *, filtered: bool) -> SortedRows:
    ordered = np.array(sorted(hashes), dtype=np.int64)
    made = HashFilter.of(ordered) if filtered else None
    return SortedRows(ordered, rows_only(len(ordered)), flags(live, GROUPS), made)


@given(
    pieces=st.lists(
        st.tuples(
            st.lists(st.sampled_from(HASHES), max_size=30), st.integers(0, 2**GROUPS - 1), st.booleans()
        ),
        max_size=4,
    ),
    needles=st.sets(st.sampled_from(HASHES)),
)
def test_hits_are_the_live_rows_of_each_segment(
    pieces: list[tuple[list[int], int, bool]], needles: set[int]
) -> None:
    segments = [segment(hashes, live, filtered=filtered) for hashes, live, filtered in pieces]
    wanted = np.array(sorted(needles), dtype=np.int64)
    with patch("spillway.state.join.search.LEAST_NEEDLES", 0):
        found = search(segments, wanted, GROUPS)
    expected = {}
    for number, (hashes, live, _) in enumerate(pieces):
        counted = Counter(value for value in hashes if live >> int(group_of(np.int64(value), GROUPS)) & 1)
        if mine := {index: counted[value] for index, value in enumerate(wanted.tolist()) if counted[value]}:
            expected[number] = mine
    got = {
        hits.segment: dict(zip(hits.needles.tolist(), hits.counts.tolist(), strict=True)) for hits in found
    }
    assert got == expected
    assert [hits.segment for hits in found] == sorted(expected)
    for hits in found:
        positions = expanded(hits.lows, hits.counts)
        repeated = wanted[np.repeat(hits.needles, hits.counts)]
        assert segments[hits.segment].hashes[positions].tolist() == repeated.tolist()
    totals = Counter(dict.fromkeys(range(len(wanted)), 0))
    for mine in expected.values():
        totals.update(mine)
    assert rows_per_needle(found, len(wanted)).tolist() == [totals[index] for index in range(len(wanted))]


@pytest.mark.parametrize("filtered", [False, True])
def test_many_needles_are_found_with_and_without_a_filter(filtered: bool) -> None:
    """Every third needle is there; those before it that the filter leaves out must not shift its number."""
    hashes = np.sort(np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 3_000))
    state = segment(hashes[::3].tolist(), 2**GROUPS - 1, filtered=filtered)
    (hits,) = search([state], hashes, GROUPS)
    assert hits.needles.tolist() == list(range(0, 3_000, 3))
    assert hits.lows.tolist() == list(range(1_000))
    assert set(hits.counts.tolist()) == {1}


@pytest.mark.parametrize("counts", [[1] * 50, [1, 2, 3, 4, 5, 6, 7, 8, 9], [30] * 9, [1] * 40 + [2, 25, 7]])
def test_rows_of_a_key_are_counted_whether_few_or_many(counts: list[int]) -> None:
    """The last key is at the end of the segment."""
    hashes = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    (hits,) = search([SortedRows(hashes, rows_only(len(hashes)))], np.unique(hashes), GROUPS)
    assert hits.counts.tolist() == counts
    assert hits.rows == sum(counts)


def test_keys_with_few_rows_need_one_search_only() -> None:
    calls: list[int] = []
    real = np.searchsorted

    def counted(*arguments: object, **options: object) -> object:
        calls.append(len(arguments[1]))  # type: ignore[arg-type]
        return real(*arguments, **options)  # type: ignore[call-overload]

    hashes = np.append(np.repeat(np.arange(100, dtype=np.int64), [1, 2, 1, 1] * 25), 1_000)
    with patch("spillway.state.join.search.np.searchsorted", counted):
        search([SortedRows(hashes, rows_only(len(hashes)))], np.arange(100, dtype=np.int64), GROUPS)
        assert calls == [100]
        many = np.repeat(hashes, 20)
        search([SortedRows(many, rows_only(len(many)))], np.arange(100, dtype=np.int64), GROUPS)
    assert calls == [100, 100, 100]
