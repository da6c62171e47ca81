"""The meter sees what numpy, Arrow and Python allocate, and forgets what is given back."""

import numpy as np
import pyarrow as pa
import pytest

from spillway.state.step.meter import MemoryMeter

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
