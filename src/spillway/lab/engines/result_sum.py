"""A summary of results in any order: how many there are, and the sum of their hashes.

Equal counts do not mean equal results: if one row is lost and another doubled, the count is right. The sum
changes with every row that is missing, too many or different, without sorting. It uses the values as text, so
engines may write an integer in different widths, and the first 60 bits of MD5, which Spark has too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from spillway.errors import JobError

NULL = "~"
TEXT_META_COLUMNS = ("time", "diff")
"""What Pathway appends to every row: when it came out, and whether it was added or retracted."""


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


def output_sum(path: Path, text_columns: Sequence[str] = ()) -> ResultSum:
    """The sum of an engine's output: Parquet, or text whose columns are given.

    Columns that the engine adds (`TEXT_META_COLUMNS`) do not count; a row that it retracts is refused.
    """
    if not text_columns:
        return parquet_sum(path)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _is_visible(file, path))
    if not files:
        return ResultSum(0, "0")
    names = ", ".join(_literal(str(file)) for file in files)
    kinds = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in text_columns)
    kept = ", ".join(_quoted(name) for name in text_columns if name not in TEXT_META_COLUMNS)
    rows = (
        f"read_csv([{names}], header = {'diff' in text_columns}, delim = ',', quote = '\"', escape = '\"', "
        f"auto_detect = false, columns = {{{kinds}}})"
    )
    with duckdb.connect() as database:
        if "diff" in text_columns:
            ((retracted,),) = database.sql(f"SELECT count(*) FROM {rows} WHERE diff <> '1'").fetchall()
            if retracted:
                raise JobError(
                    f"{path}: {retracted} retracted results, where an inner join of growing input has none"
                )
        return query_sum(database, f"SELECT {kept} FROM {rows}")


def _is_visible(file: Path, root: Path) -> bool:
    """Files and directories that begin with a dot or underscore are not committed, or not results."""
    return file.is_file() and not any(part[0] in "._" for part in file.relative_to(root).parts)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
