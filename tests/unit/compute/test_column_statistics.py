"""Statistics from Parquet files: rows, sizes, and sketches that tell join sizes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.compute.column_statistics import column_statistics, key_sketch
from spillway.compute.columnar import StoredRelation
from spillway.compute.sketch import join_rows


def test_rows_bytes_and_tasks(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, None, 3], "p": ["abc", None, "d"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": [4], "p": ["wxyz"]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"k": pa.array([], pa.int64()), "p": pa.array([], pa.string())}), tmp_path / "c")
    files = tuple(str(tmp_path / name) for name in ("a.parquet", "b.parquet", "c"))
    (made,) = column_statistics([StoredRelation(files, (("r0_0", "k"), ("r0_1", "p")))], [["r0_0"]])
    assert (made.rows, made.tasks) == (4, 2)
    assert made.row_bytes == 8 * 3 + 8 / 4  # eight letters in four rows
    assert set(made.keys) == {"r0_0"}
    assert made.keys["r0_0"].rows == 3


@pytest.mark.parametrize("skew", [0.0, 2.0])
def test_sketches_tell_join_sizes(skew: float) -> None:
    random = np.random.default_rng(5)
    left, right = ((20_000 * random.random(size) ** (1 + skew)).astype(np.int64) for size in (50_000, 30_000))
    truth = int(np.bincount(left, minlength=20_000) @ np.bincount(right, minlength=20_000))
    one, other = (key_sketch(pa.chunked_array([values])) for values in (left, right))
    assert join_rows(one, other) == pytest.approx(truth, rel=0.1)
    assert one.distinct == pytest.approx(len(np.unique(left)), rel=0.05)
    assert join_rows(one, key_sketch(pa.chunked_array([pa.array([], pa.int64())]))) == 0.0
