"""The demo's streams join to an answer an analyst can use."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.workload.stocks import (
    STOCK_QUERY_SQL,
    STOCK_SCHEMAS_SQL,
    STOCK_STREAMS,
    STOCK_VIEW_SQL,
    stock_rows,
    tickers,
    write_stock_streams,
)

DEMO_ROWS = 200_000


def connect(row_count: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for stream in STOCK_STREAMS:
        table = pa.Table.from_batches([stock_rows(stream, 0, row_count, rows=row_count)])
        connection.register(stream, table)
    return connection


def test_demo_answer_has_about_a_hundred_thousand_rows_and_a_sensible_top_five() -> None:
    with connect(DEMO_ROWS) as connection:
        connection.execute(f"CREATE TABLE results AS {STOCK_VIEW_SQL}")
        (count,) = connection.execute("SELECT count(*) FROM results").fetchall()[0]
        top = connection.execute(STOCK_QUERY_SQL).fetchall()
    assert 80_000 < count < 150_000
    assert len(top) == 5
    upside = [row[-1] for row in top]
    assert upside == sorted(upside, reverse=True)
    assert all(5 < percent < 40 for percent in upside)
    assert all(reviews >= 25 and 1 <= analysts <= 8 for _, reviews, analysts, *_ in top)


def test_values_are_believable() -> None:
    with connect(20_000) as connection:
        low, high = connection.execute("SELECT min(price), max(price) FROM prices").fetchall()[0]
        assert 5 < low < high < 400
        assert connection.execute("SELECT min(shares) > 0 AND min(trades) > 0 FROM volumes").fetchall() == [
            (True,)
        ]
        ratings = connection.execute("SELECT DISTINCT rating FROM reviews ORDER BY 1").fetchall()
        assert ratings == [(1,), (2,), (3,), (4,), (5,)]
        late = connection.execute(
            "SELECT max(review_id * 420 // 20000 - trading_minute) FROM reviews"
        ).fetchall()
        assert 50 <= late[0][0] <= 60


def test_slices_agree_with_the_whole() -> None:
    for stream in STOCK_STREAMS:
        whole = stock_rows(stream, 0, 5_000, rows=5_000, seed=3)
        assert stock_rows(stream, 1_200, 3_400, rows=5_000, seed=3).equals(whole.slice(1_200, 2_200))
        assert not stock_rows(stream, 0, 5_000, rows=5_000, seed=4).equals(whole)


def test_symbols_are_distinct() -> None:
    names = tickers().to_pylist()
    assert len(set(names)) == len(names) == 400


def test_written_columns_are_the_declared_ones(tmp_path: Path) -> None:
    write_stock_streams(tmp_path, rows=1_000, files=4, seed=1)
    spark_names = {"string": "string", "int32": "int", "int64": "bigint", "double": "double"}
    for stream in STOCK_STREAMS:
        table = pq.read_table(tmp_path / stream)
        declared = ", ".join(f"{field.name} {spark_names[str(field.type)]}" for field in table.schema)
        assert declared == STOCK_SCHEMAS_SQL[stream]
        assert table.num_rows == 1_000 and len(list((tmp_path / stream).iterdir())) == 4
