"""Segments: sorting, masks and merging keep every live row once, in the order that a stopped probe needs."""

import datetime as dt

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spillway.model.groups import all_groups, from_hex, group_set, members, to_hex
from spillway.state.rows.group import flags, group_of, group_offsets, group_starts, groups_in
from spillway.state.rows.sorted_rows import SortedRows, merge, rows_only, sort_rows
from spillway.state.step.intake import in_utc

FEW = st.lists(st.sampled_from([-(2**63), -5, -1, 0, 1, 2**40, 2**63 - 1]), max_size=12)
GROUP_COUNTS = st.sampled_from([1, 2, 3, 7, 256, 65_536])


def numbered(hashes: list[int], first: int = 0) -> SortedRows:
    numbers = pa.array(range(first, first + len(hashes)), pa.int64())
    return sort_rows(np.array(hashes, dtype=np.int64), pa.RecordBatch.from_arrays([numbers], names=["n"]))


@given(st.integers(-(2**63), 2**63 - 1), GROUP_COUNTS)
def test_a_group_is_a_range_of_hashes(value: int, groups: int) -> None:
    group = int(group_of(np.array([value]), groups)[0])
    assert group == (((value >> 32) + 2**31) * groups) >> 32
    starts = group_starts(groups)
    assert int(np.searchsorted(starts, value, side="right")) - 1 == group


@given(st.sets(st.integers(0, 299)), FEW)
def test_sets_of_groups(chosen: set[int], hashes: list[int]) -> None:
    mask = group_set(chosen)
    assert set(members(mask)) == chosen
    assert from_hex(to_hex(mask)) == mask
    assert set(np.flatnonzero(flags(mask, 300)).tolist()) == chosen
    ordered = np.sort(np.array(hashes, dtype=np.int64))
    assert set(members(groups_in(ordered, 300))) == set(group_of(ordered, 300).tolist())
    assert group_offsets(ordered, 300)[-1] == len(ordered)


@given(st.lists(st.tuples(FEW, st.integers(0, 7)), min_size=1, max_size=5))
def test_merging_keeps_live_rows_in_order_of_age(pieces: list[tuple[list[int], int]]) -> None:
    """Against the obvious: concatenate the live rows, sort stably by hash."""
    groups = 3
    segments, wanted = [], []
    for age, (hashes, live) in enumerate(pieces):
        made = numbered(hashes, 100 * age)
        segments.append(SortedRows(made.hashes, made.columns, flags(live, groups)))
        for hash_, number in zip(made.hashes.tolist(), made.columns.column(0).to_pylist(), strict=True):
            if live >> int(group_of(np.array([hash_]), groups)[0]) & 1:
                wanted.append((hash_, number))
    merged = merge(segments, groups)
    got = list(zip(merged.hashes.tolist(), merged.columns.column(0).to_pylist(), strict=True))
    assert got == sorted(wanted, key=lambda row: row[0])
    assert merged.live is None


def test_merging_rows_without_columns_keeps_their_number() -> None:
    whole = SortedRows(np.array([1, 5], dtype=np.int64), rows_only(2))
    other = SortedRows(np.array([0, 5, 9], dtype=np.int64), rows_only(3))
    merged = merge([whole, other], 4)
    assert merged.hashes.tolist() == [0, 1, 5, 5, 9]
    assert merged.columns.num_rows == 5
    assert all_groups(3) == 0b111


def test_instants_of_any_zone_become_utc_also_when_nested() -> None:
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    tokyo = pa.timestamp("us", "Asia/Tokyo")
    kinds = [
        (tokyo, noon),
        (pa.list_(tokyo), [noon, None]),
        (pa.map_(pa.string(), tokyo), [("a", noon)]),
        (pa.struct([("at", pa.list_(tokyo)), ("n", pa.int32())]), {"at": [noon], "n": 1}),
    ]
    for kind, value in kinds:
        array = in_utc(pa.array([value, None], kind))
        assert "Asia" not in str(array.type)
        assert array.to_pylist() == [value, None]
    local = pa.array([noon.replace(tzinfo=None)], pa.timestamp("us"))
    assert in_utc(local) is local
