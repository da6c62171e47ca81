"""The definition of tuple range and join ratio, kept by every slice of every stream."""

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import SourceError
from spillway.state.rows.group import group_of
from spillway.workload.row_slices import SCHEMA, count_results, keys, partition_values, rows
from spillway.workload.workload import Alternation, PartitionClass, Workload

THIRDS = (
    PartitionClass(4, Fraction(1, 3)),
    PartitionClass(2, Fraction(1, 3)),
    PartitionClass(1, Fraction(1, 3)),
)


def test_each_value_occurs_ratio_times_in_every_range() -> None:
    workload = Workload(tuple_range=30_000, classes=THIRDS)
    for number in range(3):
        k = keys(workload, "a", number * 30_000, (number + 1) * 30_000)
        partition, value = partition_values(workload, "a", number * 30_000, (number + 1) * 30_000)
        for ratio, first in ((4, 0), (2, 100), (1, 200)):
            mine = (partition >= first) & (partition < first + 100)
            distinct, occurrences = np.unique(k[mine], return_counts=True)
            assert set(occurrences) == {ratio}
            assert len(distinct) == 10_000 // ratio
            assert int(value[mine].max()) == 100 // ratio - 1


def test_next_range_repeats_the_values_of_all_streams() -> None:
    workload = Workload(tuple_range=30_000, classes=THIRDS)
    first = set(keys(workload, "a", 0, 30_000).tolist())
    assert set(keys(workload, "a", 30_000, 60_000).tolist()) == first
    assert set(keys(workload, "c", 0, 30_000).tolist()) == first


@pytest.mark.parametrize("ranges", [1, 2, 3])
def test_results_grow_with_the_power_of_ratio_times_ranges(ranges: int) -> None:
    workload = Workload(tuple_range=30_000, classes=THIRDS)
    expected = sum(10_000 // ratio * (ratio * ranges) ** 3 for ratio in (4, 2, 1))
    assert count_results(workload, ranges * 30_000) == expected


def test_count_results_equals_a_join_by_key() -> None:
    workload = Workload(streams=("a", "b"), tuple_range=600, partitions=20)
    tables = [pa.Table.from_batches([rows(workload, stream, 0, 1_700)]).select(["k"]) for stream in "ab"]
    assert tables[0].join(tables[1], "k", join_type="inner").num_rows == count_results(workload, 1_700)


def test_ratio_that_does_not_divide_holds_on_average() -> None:
    workload = Workload(tuple_range=50_000, classes=(PartitionClass(3),))
    _, occurrences = np.unique(keys(workload, "a", 0, 150_000), return_counts=True)
    assert occurrences.mean() == pytest.approx(9, rel=0.01)
    assert occurrences.min() >= 8 and occurrences.max() <= 10


def test_class_with_a_range_of_its_own() -> None:
    own = (PartitionClass(4, Fraction(1, 3), 15_000), PartitionClass(1, Fraction(2, 3), 45_000))
    workload = Workload(classes=own, partitions=150)
    partition, _ = partition_values(workload, "a", 0, 45_000)
    k = keys(workload, "a", 0, 45_000)
    assert set(np.unique(k[partition < 50], return_counts=True)[1]) == {12}
    assert set(np.unique(k[partition >= 50], return_counts=True)[1]) == {1}


def test_matches_so_far_are_spread_over_the_range() -> None:
    """In the middle of a range a value has half of its rows, give or take: no stream delivers by key."""
    workload = Workload(tuple_range=30_000, classes=(PartitionClass(4),), partitions=100)
    counts = np.unique(keys(workload, "b", 0, 15_000), return_counts=True)[1]
    share_of_two = np.mean(counts == 2)
    assert counts.mean() == pytest.approx(2.13, abs=0.15)
    assert 0.3 < share_of_two < 0.5  # hypergeometric: 0.375 of all values, 0.4 of those seen


@given(st.integers(0, 40_000), st.integers(0, 3_000), st.integers(0, 2**64 - 1), st.booleans())
def test_any_slice_equals_the_same_part_of_a_longer_one(
    lo: int, count: int, seed: int, alternating: bool
) -> None:
    alternation = Alternation(2, 5) if alternating else None
    workload = Workload(
        tuple_range=7_001,
        classes=THIRDS,
        partitions=36,
        rate_rows_per_second=1_000,
        alternation=alternation,
        seed=seed,
    )
    whole = rows(workload, "b", max(0, lo - 500), lo + count + 7)
    part = rows(workload, "b", lo, lo + count)
    assert part.equals(whole.slice(lo - max(0, lo - 500), count))


def test_streams_differ_but_do_not_depend_on_their_neighbours() -> None:
    assert rows(Workload(streams=("b",)), "b", 5, 900).equals(rows(Workload(), "b", 5, 900))
    assert not np.array_equal(keys(Workload(), "a", 0, 900), keys(Workload(), "b", 0, 900))
    assert not np.array_equal(keys(Workload(), "a", 0, 900), keys(Workload(seed=1), "a", 0, 900))


def test_columns() -> None:
    start = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    batch = rows(Workload(rate_rows_per_second=4, width_bytes=23, start=start), "a", 2, 6)
    assert batch.schema == SCHEMA
    assert batch.column("id").to_pylist() == [2, 3, 4, 5]
    assert [ts.isoformat() for ts in batch.column("ts").to_pylist()[:2]] == [
        "2026-01-05T09:30:00.500000+00:00",
        "2026-01-05T09:30:00.750000+00:00",
    ]
    texts = batch.column("p").to_pylist()
    assert {len(text) for text in texts} == {23} and len(set(texts)) == 4


def test_empty_slice_and_empty_payload() -> None:
    assert rows(Workload(), "a", 7, 7).num_rows == 0
    assert rows(Workload(width_bytes=0), "a", 0, 3).column("p").to_pylist() == ["", "", ""]


def test_alternation_favours_one_half_then_the_other() -> None:
    workload = Workload(rate_rows_per_second=1_650, alternation=Alternation(20, 10, 10))
    partition, _ = partition_values(workload, "a", 0, 16_500 + 2 * 33_000)
    lower = partition < 150
    for lo, hi, share in ((0, 16_500, 10 / 11), (16_500, 49_500, 1 / 11), (49_500, 82_500, 10 / 11)):
        assert lower[lo:hi].mean() == pytest.approx(share, abs=1e-9)
        _, per_partition = np.unique(partition[lo:hi][lower[lo:hi]], return_counts=True)
        assert len(set(per_partition)) == 1


def test_alternation_keeps_the_ratio_per_partition() -> None:
    """A partition's own rows repeat its values once per range of them, however fast they come."""
    workload = Workload(
        tuple_range=3_000,
        classes=(PartitionClass(2),),
        partitions=10,
        rate_rows_per_second=550,
        alternation=Alternation(3, 10),
    )
    k = keys(workload, "a", 0, 30_000)
    partition, _ = partition_values(workload, "a", 0, 30_000)
    for number in range(10):
        mine = k[partition == number]
        assert len(mine) > 300
        counts = np.unique(mine, return_counts=True)[1]
        assert len(counts) == 150
        assert counts.max() - counts.min() <= 2


def test_key_falls_into_the_group_of_its_partition() -> None:
    workload = Workload(partitions=300)
    partition, value = partition_values(workload, "a", 0, 30_000)
    k = keys(workload, "a", 0, 30_000)
    hashed = np.array([xxhash64_of_long(int(key)) for key in k[:500]], dtype=np.int64)
    assert np.array_equal(group_of(hashed, 300), partition[:500].astype(np.int64))
    assert np.array_equal(group_of(hashed, 100), partition[:500].astype(np.int64) // 3)
    assert len(np.unique(k)) == len(np.unique(value * np.uint64(300) + partition))


def test_plain_keys_name_their_partition() -> None:
    workload = Workload(plain_keys=True)
    partition, _ = partition_values(workload, "a", 0, 1_000)
    assert np.array_equal(keys(workload, "a", 0, 1_000) % 300, partition.astype(np.int64))


@pytest.mark.parametrize(("stream", "lo", "hi"), [("z", 0, 1), ("a", -1, 1), ("a", 2, 1)])
def test_bad_slices_are_refused(stream: str, lo: int, hi: int) -> None:
    with pytest.raises(SourceError, match="workload"):
        rows(Workload(), stream, lo, hi)


def xxhash64_of_long(value: int) -> int:
    """Spark's `xxhash64(long)`, forwards, in plain integers."""
    mask = 2**64 - 1
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def rotate(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & mask

    h = (42 + p5 + 8) & mask
    h ^= rotate((value & mask) * p2 & mask, 31) * p1 & mask
    h = (rotate(h, 27) * p1 + p4) & mask
    h = (h ^ (h >> 33)) * p2 & mask
    h = (h ^ (h >> 29)) * p3 & mask
    h ^= h >> 32
    return h - 2**64 if h >= 2**63 else h
