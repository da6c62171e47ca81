"""The sum of results: blind to their order and width, not to what is lost or doubled."""

import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from spillway.lab.engines.process import run_subprocess
from spillway.lab.engines.result_sum import ResultSum, parquet_sum, query_sum


def write(path: Path, ids: list[int], kind: pa.DataType, texts: list[str | None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"t": texts, "id": pa.array(ids, kind)}), path)


def test_order_files_and_widths_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.parquet", [1, 2], pa.int64(), ["x", None])
    write(tmp_path / "a" / "2.parquet", [3], pa.int64(), ["z"])
    write(tmp_path / "b.parquet", [3, 1, 2], pa.int32(), ["z", "x", None])
    whole = parquet_sum(tmp_path / "a")
    assert whole == parquet_sum(tmp_path / "b.parquet")
    assert whole.rows == 3
    with duckdb.connect() as database:
        sql = "SELECT * FROM (VALUES (2, NULL), (3, 'z'), (1, 'x')) AS v(id, t)"
        assert query_sum(database, sql) == whole
    assert parquet_sum(tmp_path / "none") == ResultSum(0, "0")


@pytest.mark.parametrize(
    ("ids", "texts"),
    [([1, 1, 3], ["x", "x", "z"]), ([1, 2, 3], ["x", "x", "z"]), ([1, 2, 4], ["x", None, "z"])],
)
def test_a_row_that_is_doubled_for_another_is_seen(
    tmp_path: Path, ids: list[int], texts: list[str | None]
) -> None:
    write(tmp_path / "a.parquet", [1, 2, 3], pa.int64(), ["x", None, "z"])
    write(tmp_path / "b.parquet", ids, pa.int64(), texts)
    right, wrong = parquet_sum(tmp_path / "a.parquet"), parquet_sum(tmp_path / "b.parquet")
    assert right.rows == wrong.rows
    assert right.checksum != wrong.checksum


def test_the_output_of_an_engine_is_summed_outside_of_it(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1], pa.int64(), ["x"])
    answer = (
        '{"engine": "e", "rows_in": 1, "results": 1, "seconds": 1, "epoch_seconds": [], "output": "%s"}'
        % (tmp_path / "a.parquet")
    )
    found = run_subprocess([sys.executable, "-c", f"print({answer!r})"], 60)
    assert found.checksum == parquet_sum(tmp_path / "a.parquet").checksum
