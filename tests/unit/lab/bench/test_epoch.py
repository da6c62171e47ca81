"""The pure parts of `bench epoch`, and its input."""

from pathlib import Path
from statistics import median

import duckdb
import pyarrow.parquet as pq
import pytest

from spillway.errors import JobError
from spillway.lab.bench.epoch import bench_epoch, growth, spread_ms
from spillway.lab.engines import SHAPES, write_fresh_keys


def test_growth_compares_the_last_ten_with_the_second_ten() -> None:
    assert growth([9.0] * 10 + [1.0] * 10 + [5.0] * 10 + [1.5] * 10) == 1.5
    assert growth([1.0] * 19) is None
    assert growth([1.0] * 20 + [2.0] * 4 + [1.0] * 6) == 1.4
    assert growth([1.0] * 20 + [2.0] * 4 + [1.0] * 6, median) == 1.0


def test_spread() -> None:
    assert spread_ms([0.3, 0.1, 0.2]) == {"least": 100.0, "median": 200.0}


def test_too_few_epochs_are_refused() -> None:
    with pytest.raises(JobError, match="use 30 or more"):
        bench_epoch(state_rows=9, rows=3, epochs=29, growth_rows=3, limit_seconds=1, note=lambda _: None)


@pytest.mark.parametrize(("shape", "expected"), [("join", 1_600), ("tree", 400)])
def test_results_of_equal_files_do_not_grow(tmp_path: Path, shape: str, expected: int) -> None:
    write_fresh_keys(tmp_path, [3_000, 400, 400, 400], shape)
    streams = SHAPES[shape].streams
    files = {stream: sorted((tmp_path / stream).iterdir()) for stream in streams}
    assert [pq.read_metadata(file).num_rows for file in files["a"]] == [3_000, 400, 400, 400]
    modified = [file.stat().st_mtime for file in files["b"]]
    assert modified == sorted(set(modified))

    def results(first: int, last: int) -> int:
        with duckdb.connect() as database:
            for stream in streams:
                names = [str(file) for file in files[stream][first:last]]
                database.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({names})")
            sql = f"SELECT count(*) FROM ({SHAPES[shape].view_sql})"
            return int(database.sql(sql).fetchall()[0][0])

    alone = [results(number, number + 1) for number in range(4)]
    assert results(0, 4) == sum(alone)
    assert all(0.6 * expected < found < 1.4 * expected for found in alone[1:])
