"""The demo compares its results with DuckDB's: a lost or a doubled row is noticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import write_deltalake
from duckdb import DuckDBPyConnection, connect

from spillway.cli.demo import _check, _job_text, _results
from spillway.errors import StateError
from spillway.job import read_job
from spillway.workload import STOCK_SCHEMAS_SQL, STOCK_VIEW_SQL, write_stock_streams


@pytest.fixture
def results(tmp_path: Path) -> Iterator[DuckDBPyConnection]:
    """The streams, and right results in a Delta table."""
    write_stock_streams(tmp_path / "data", rows=4_000, files=2, seed=7)
    with connect() as database:
        for name in STOCK_SCHEMAS_SQL:
            database.read_parquet(str(tmp_path / "data" / name / "*.parquet")).create_view(name)
        write_deltalake(tmp_path / "out", database.sql(STOCK_VIEW_SQL).to_arrow_table())
    with _results(tmp_path / "data", tmp_path / "out") as database:
        yield database


def test_right_results(results: DuckDBPyConnection) -> None:
    assert _check(results) == results.table("results").shape[0] > 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM results WHERE rowid = 0", "1 rows are missing and 0 are too many"),
        ("INSERT INTO results FROM results LIMIT 1", "0 rows are missing and 1 are too many"),
        ("UPDATE results SET price = 0 WHERE rowid = 0", "1 rows are missing and 1 are too many"),
    ],
)
def test_wrong_results(results: DuckDBPyConnection, change: str, told: str) -> None:
    results.execute(change)
    with pytest.raises(StateError, match=told):
        _check(results)


def test_the_job_has_too_little_memory_and_a_skewed_start(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(_job_text("5MB"))
    run = read_job(file).run
    assert (run.processors, run.memory_bytes, run.adapt) == (2, 5 << 20, "lazy-disk")
    assert run.distribution == (0.8, 0.2)
