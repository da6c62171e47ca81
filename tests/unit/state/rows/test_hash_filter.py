"""The filter of a segment's hashes: it never misses one, and lets few others pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.state.rows.group import Int64Array, hash_in_group
from spillway.state.rows.hash_filter import BLOCK_ROWS, HashFilter, lower_half

HASHES = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40)


def random_hashes(rows: int, seed: int) -> Int64Array:
    return np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, rows)


@given(HASHES)
def test_every_hash_of_the_segment_passes(values: list[int]) -> None:
    hashes = np.array(values, dtype=np.int64)
    made = HashFilter.of(hashes)
    assert made.bits.dtype == np.uint8
    assert len(made.bits) == len(hashes)
    assert made.candidates(lower_half(hashes)).tolist() == list(range(len(hashes)))


@pytest.mark.parametrize("rows", [1_000, 3 * BLOCK_ROWS + 7])
def test_about_one_other_hash_in_eight_passes(rows: int) -> None:
    others = random_hashes(20_000, 1)
    passed = HashFilter.of(random_hashes(rows, 0)).candidates(lower_half(others))
    assert 0.09 < len(passed) / len(others) < 0.14
    assert (np.diff(passed) > 0).all()


def test_hashes_of_one_group_are_told_apart() -> None:
    """Their upper halves are alike."""
    start = np.full(2_000, 77 << 32)
    mine, others = (hash_in_group(start, random_hashes(2_000, seed)) for seed in (0, 1))
    passed = HashFilter.of(mine).candidates(lower_half(others))
    assert len(passed) < 0.2 * len(others)


def test_a_filter_of_more_bits_than_can_be_numbered_uses_a_part_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spillway.state.rows.hash_filter.MAX_BITS", 4_000)
    hashes = random_hashes(1_000, 0)
    made = HashFilter.of(hashes)
    assert not made.bits[500:].any()
    assert len(made.candidates(lower_half(hashes))) == 1_000
    assert len(made.candidates(lower_half(random_hashes(1_000, 1)))) < 300
