"""A summary of results in any order: how many there are, and the sum of their hashes.

Equal counts do not mean equal results: if one row is lost and another doubled, the count is right. The sum
changes with every row that is missing, too many or different, without sorting. It uses the values as text, so
engines may write an integer in different widths, and the first 60 bits of MD5, which Spark has too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

NULL = "~"


class ResultSum(NamedTuple):
    rows: int
    checksum: str


def sum_expression(columns: Sequence[str]) -> str:
    """Count and sum over rows with these columns, in DuckDB's SQL."""
    text = ", ".join(f"coalesce(CAST({_quoted(name)} AS VARCHAR), '{NULL}')" for name in sorted(columns))
    return f"count(*), sum(CAST('0x' || substr(md5(concat_ws('|', {text})), 1, 15) AS BIGINT))"


def query_sum(database: duckdb.DuckDBPyConnection, sql: str) -> ResultSum:
    """The sum of a query's results, computed by DuckDB."""
    names = database.sql(f"SELECT * FROM ({sql}) LIMIT 0").columns
    ((rows, total),) = database.sql(f"SELECT {sum_expression(names)} FROM ({sql})").fetchall()
    return ResultSum(int(rows), f"{int(total or 0):x}")


def parquet_sum(path: Path) -> ResultSum:
    """The sum of a Parquet file, or of all Parquet files below a directory."""
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    if not files:
        return ResultSum(0, "0")
    with duckdb.connect() as database:
        names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        return query_sum(database, f"SELECT * FROM read_parquet([{names}])")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
