"""Tables split into streams of files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.lab.engines.tpch_data import split_table


@pytest.mark.parametrize(("most", "counts"), [(None, [2, 2, 3]), (2, [0, 1, 1])])
def test_a_table_becomes_files_in_order(tmp_path: Path, most: int | None, counts: list[int]) -> None:
    pq.write_table(pa.table({"n": list(range(7))}), tmp_path / "t.parquet")
    split_table(tmp_path / "t.parquet", tmp_path / "t", files=3, most_rows=most)
    files = sorted((tmp_path / "t").iterdir(), key=lambda file: file.stat().st_mtime)
    tables = [pq.read_table(file) for file in files]
    assert [table.num_rows for table in tables] == counts
    assert pa.concat_tables(tables)["n"].to_pylist() == list(range(7))[:most]
