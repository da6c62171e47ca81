"""Sketches of integer keys tell join sizes."""

import numpy as np
import pyarrow as pa
import pytest

from spillway.compute.key_sketch import key_sketch
from spillway.compute.sketch import join_rows


@pytest.mark.parametrize("skew", [0.0, 2.0])
def test_sketches_tell_join_sizes(skew: float) -> None:
    random = np.random.default_rng(5)
    left, right = ((20_000 * random.random(size) ** (1 + skew)).astype(np.int64) for size in (50_000, 30_000))
    truth = int(np.bincount(left, minlength=20_000) @ np.bincount(right, minlength=20_000))
    one, other = (key_sketch(pa.chunked_array([values])) for values in (left, right))
    assert join_rows(one, other) == pytest.approx(truth, rel=0.1)
    assert one.distinct == pytest.approx(len(np.unique(left)), rel=0.05)
    assert join_rows(one, key_sketch(pa.chunked_array([pa.array([], pa.int64())]))) == 0.0
