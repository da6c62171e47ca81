"""`permute` is a bijection for every size and key, and its keys matter."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spillway.workload.permutation import permute, splitmix64


@given(st.integers(1, 3_000), st.integers(0, 2**64 - 1))
def test_every_position_is_hit_once(size: int, key: int) -> None:
    image = permute(
        np.arange(size, dtype=np.uint64), np.array([size], dtype=np.uint64), np.array([key], dtype=np.uint64)
    )
    assert np.array_equal(np.sort(image), np.arange(size, dtype=np.uint64))


def test_sizes_and_keys_may_differ_by_element() -> None:
    size = np.array([1, 2, 7, 100], dtype=np.uint64)
    key = np.array([5, 6, 7, 8], dtype=np.uint64)
    together = permute(size - np.uint64(1), size, key)
    alone = [permute(size[i : i + 1] - np.uint64(1), size[i : i + 1], key[i : i + 1])[0] for i in range(4)]
    assert together.tolist() == alone


def test_images_are_spread_evenly() -> None:
    """Position 0 of many shuffles: chi-square over 10 places stays below the 0.1 % point."""
    image = permute(
        np.zeros(50_000, dtype=np.uint64), np.array([10], dtype=np.uint64), np.arange(50_000, dtype=np.uint64)
    )
    counts = np.bincount(image.astype(np.int64), minlength=10)
    assert ((counts - 5_000) ** 2 / 5_000).sum() < 27.9


def test_splitmix64_is_the_published_sequence() -> None:
    step = 0x9E3779B97F4A7C15
    state = np.array([(1234567 + step * n) % 2**64 for n in range(3)], dtype=np.uint64)
    assert splitmix64(state).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
