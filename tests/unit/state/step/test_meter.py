"""The meter sees what numpy, Arrow and Python allocate, and under a limit it gives back what was freed."""

import multiprocessing

import numpy as np
import pyarrow as pa
import pytest

from spillway.state.step.meter import KEPT_SHARE, MemoryMeter, resident_bytes

SIZE = 8 << 20


def numpy_array() -> object:
    return np.ones(SIZE // 8)


def arrow_buffer() -> object:
    return pa.allocate_buffer(SIZE)


def python_bytes() -> object:
    return bytes(SIZE)


@pytest.mark.parametrize("made", [numpy_array, arrow_buffer, python_bytes])
def test_what_a_step_allocates_counts_beside_the_images(made: object) -> None:
    meter = MemoryMeter(lambda: 1_000)
    assert callable(made)
    kept = made()
    meter.sample()
    assert SIZE <= meter.peak_bytes - 1_000 < SIZE * 1.1
    del kept
    meter.images = lambda: 2_000
    meter.sample()
    assert meter.peak_bytes < SIZE * 1.1


def test_memory_that_was_there_before_may_go_without_hiding_what_comes() -> None:
    before = numpy_array()
    meter = MemoryMeter(lambda: 0)
    del before
    meter.sample()
    kept = numpy_array()
    meter.sample()
    assert meter.peak_bytes >= SIZE
    del kept


def freed_bytes() -> int:
    """How much goes back of blocks below one that stays, so that the heap cannot shrink by itself."""
    meter = MemoryMeter(lambda: 0, limit_bytes=KEPT_SHARE << 20)
    kept = [bytes(64 << 10) for _ in range(400)]
    meter.sample()
    full = resident_bytes()
    del kept[:-1]
    meter.sample()
    assert len(kept) == 1
    return full - resident_bytes()


def test_under_a_limit_the_c_library_keeps_little_of_what_was_freed() -> None:
    context = multiprocessing.get_context("spawn")  # earlier tests leave free memory in this process
    with context.Pool(1) as pool:
        assert pool.apply(freed_bytes) > 12 << 20
