"""Directories that a file source reads in order, complete or not there at all."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spillway.errors import SourceError
from spillway.workload.files import write_streams
from spillway.workload.row_slices import rows
from spillway.workload.uniform import UniformJoin
from spillway.workload.workload import Workload


def test_files_are_equal_slices_in_order_of_modification(tmp_path: Path) -> None:
    workload = Workload(streams=("a", "b"))
    write_streams(tmp_path, workload, rows=1_000, files=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    files = sorted((tmp_path / "b").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len({path.stat().st_mtime for path in files}) == 4
    for number, path in enumerate(files):
        expected = rows(workload, "b", number * 250, (number + 1) * 250)
        assert pq.read_table(path).to_batches()[0].equals(expected)


def test_uniform_join_has_two_rows_per_key(tmp_path: Path) -> None:
    write_streams(tmp_path, UniformJoin(5_000), rows=10_000, files=2)
    table = pq.read_table(tmp_path / "c")
    counts = table.group_by("k").aggregate([("id", "count")]).column("id_count").to_numpy()
    assert table.schema.names == ["k", "id", "p"]
    assert counts.sum() == 10_000
    assert 4_200 < len(counts) < 4_450  # 5000 * (1 - e^-2)
    assert {len(text) for text in table.column("p").to_pylist()} == {40}


@pytest.mark.parametrize(("row_count", "files"), [(10, 3), (10, 0), (-1, 1)])
def test_uneven_files_are_refused(tmp_path: Path, row_count: int, files: int) -> None:
    with pytest.raises(SourceError, match="divides"):
        write_streams(tmp_path, UniformJoin(5), rows=row_count, files=files)
    assert list(tmp_path.iterdir()) == []


def test_existing_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(SourceError, match="exists already"):
        write_streams(tmp_path, UniformJoin(5), rows=10, files=1)


def test_left_over_of_a_broken_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".a.unfinished").mkdir()
    (tmp_path / ".a.unfinished" / "part-99999.parquet").write_text("half")
    write_streams(tmp_path, UniformJoin(5, ("a",)), rows=10, files=1)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["part-00000.parquet"]


def test_no_keys_are_refused() -> None:
    with pytest.raises(SourceError, match="key count"):
        UniformJoin(0)
