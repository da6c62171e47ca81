"""The vectorised probe against the join by its definition, for any cut into segments and any interval."""

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.state.join.matches import Gathering
from spillway.state.join.probe import MAX_RESULTS_OF_ROW, chunk, probe, verify
from spillway.state.join.reference import join
from spillway.state.rows.group import flags, group_of
from spillway.state.rows.hash_filter import HashFilter
from spillway.state.rows.sorted_rows import SortedRows, merge, sort_rows

GROUPS = 4
SPREAD = np.uint64(0x9E3779B97F4A7C15)
KEYS = st.integers(0, 9)


def rows_of(keys: list[int], first: int, buckets: int) -> SortedRows:
    """Rows (id, key); keys that are equal modulo `buckets` share their hash."""
    values = np.array(keys, dtype=np.int64)
    hashes = ((values % buckets).astype(np.uint64) * SPREAD).view(np.int64)
    ids = np.arange(first, first + len(keys))
    batch = pa.RecordBatch.from_arrays([pa.array(ids), pa.array(values)], names=["id", "k"])
    return sort_rows(hashes, batch)


@st.composite
def probes(draw: st.DrawFn) -> dict[str, Any]:
    inputs = draw(st.integers(2, 4))
    segments = st.lists(st.tuples(st.lists(KEYS, max_size=6), st.integers(0, 2**GROUPS - 1)), max_size=3)
    return {
        "driving": draw(st.integers(0, inputs - 1)),
        "driver": draw(st.lists(KEYS, max_size=8)),
        "segments": [draw(segments) for _ in range(inputs)],
        "buckets": draw(st.sampled_from([1, 3, 1000])),
        "step": draw(st.integers(1, 9)),
        "gathering": Gathering(draw(st.sampled_from([0, 3, 1 << 20]))),
        "filtered": draw(st.booleans()),
    }


def state_of(case: dict[str, Any]) -> tuple[list[list[SortedRows]], list[list[dict[str, Any]]]]:
    state, rows = [], []
    for pieces in case["segments"]:
        made, live_rows = [], []
        for age, (keys, live) in enumerate(pieces):
            piece = rows_of(keys, 100 * (age + 1), case["buckets"])
            filter_ = HashFilter.of(piece.hashes) if case["filtered"] else None
            made.append(SortedRows(piece.hashes, piece.columns, flags(live, GROUPS), filter_))
            owned = group_of(piece.hashes, GROUPS).tolist()
            live_rows += [
                row for row, group in zip(piece.columns.to_pylist(), owned, strict=True) if live >> group & 1
            ]
        state.append(made)
        rows.append(live_rows)
    return state, rows


def expand(case: dict[str, Any], state: list[list[SortedRows]]) -> list[tuple[int, ...]]:
    """All results in the order of the probe, taken in small intervals."""
    driver = rows_of(case["driver"], 0, case["buckets"])
    keys = ((1,),) * len(state)
    with patch("spillway.state.join.search.LEAST_NEEDLES", 0):
        found = probe(driver, case["driving"], state, GROUPS, keys, case["gathering"])
    results: list[tuple[int, ...]] = []
    for low in range(0, found.total, case["step"]):
        piece = chunk(found, low, min(found.total, low + case["step"]))
        assert piece.rows == min(found.total, low + case["step"]) - low
        if found.collisions:
            piece = verify(piece, keys)
        if not piece.rows:
            continue
        columns = [piece.column(number, 0).to_pylist() for number in range(len(state))]
        results += list(zip(*columns, strict=True))
    return results


@given(probes())
def test_results_are_those_of_the_definition(case: dict[str, Any]) -> None:
    state, rows = state_of(case)
    driver = rows_of(case["driver"], 0, case["buckets"])
    rows[case["driving"]] = driver.columns.to_pylist()
    wanted = Counter(tuple(row["id"] for row in match) for match in join(rows, lambda _, row: row["k"]))
    assert Counter(expand(case, state)) == wanted


@given(probes())
def test_a_position_says_which_rows_are_done_and_how_much_of_the_next(case: dict[str, Any]) -> None:
    state, _ = state_of(case)
    driver = rows_of(case["driver"], 0, case["buckets"])
    found = probe(driver, case["driving"], state, GROUPS, ((),) * len(state), case["gathering"])
    of_row = np.zeros(driver.rows, dtype=np.int64)
    of_row[found.rows] = np.diff(found.ends, prepend=0)
    for results in range(found.total):
        done, emitted = found.position(results)
        assert of_row[:done].sum() + emitted == results
        assert emitted < of_row[done]
    assert found.position(found.total) == (driver.rows, 0)


def test_a_condition_that_is_null_does_not_hold() -> None:
    found = probe(rows_of([1, 1, 1], 0, 1000), 0, [[], [rows_of([1], 10, 1000)]], GROUPS, ((), ()))
    kept = chunk(found, 0, 3).filter(pa.array([None, True, False]))
    assert kept.column(0, 0).to_pylist() == [1]


def test_matches_are_copied_where_rows_and_bytes_of_an_input_allow_it() -> None:
    state = [[], [rows_of([1, 1], 10, 1000), rows_of([1], 20, 1000)]]
    sizes = (np.zeros(0), np.array([10.0, 100.0]))
    for gathering, is_copied in (
        (Gathering(3), True),
        (Gathering(2), False),
        (Gathering(3, 120, sizes), True),
        (Gathering(3, 119, sizes), False),
    ):
        assert probe(rows_of([1], 0, 1000), 0, state, GROUPS, ((), ()), gathering).is_copied == is_copied


@given(probes())
def test_the_order_does_not_depend_on_how_state_is_cut(case: dict[str, Any]) -> None:
    """What lets a probe stop inside a row, and go on after the state was merged."""
    state, _ = state_of(case)
    merged = [[merge(pieces, GROUPS)] if pieces else [] for pieces in state]
    assert expand(case, state) == expand(case, merged)


@pytest.mark.parametrize("cut", [1, 2])
def test_keys_are_compared_where_matches_are_too_many_to_look_at(cut: int) -> None:
    """Keys 1 and 2 share a hash; too many matches are not looked at before they are expanded."""
    pieces = [[2] * 5] if cut == 1 else [[2] * 2, [2] * 3]
    state = [[], [rows_of(keys, 10, 1) for keys in pieces]]
    found = probe(rows_of([1], 0, 1), 0, state, GROUPS, ((1,), (1,)), Gathering(4))
    assert found.collisions
    assert verify(chunk(found, 0, 5), ((1,), (1,))).rows == 0


def test_more_results_than_a_number_can_count_are_bounded() -> None:
    """Eight inputs of a thousand rows of one key: 10^21 results of a row; the first are there at once."""
    many = rows_of([1] * 1_000, 0, 1_000)
    state = [[many] for _ in range(8)]
    found = probe(rows_of([1, 1, 1], 0, 1_000), 0, state, GROUPS, ((),) * 8)
    assert found.total == MAX_RESULTS_OF_ROW
    piece = chunk(found, 5, 9)
    assert piece.column(7, 0).to_pylist() == [5, 6, 7, 8]
    assert piece.column(0, 0).to_pylist() == [0] * 4


def test_driving_rows_of_one_hash_are_looked_up_once() -> None:
    driver = rows_of([1, 1, 2, 2, 2], 0, 1000)
    found = probe(driver, 0, [[], [rows_of([1, 2, 2], 10, 1000)]], GROUPS, ((), ()))
    assert np.unique(driver.hashes[found.rows]).tolist() == np.unique(driver.hashes).tolist()
    assert sorted(np.bincount(found.needles).tolist()) == [2, 3]
    assert found.total == 2 * 1 + 3 * 2
