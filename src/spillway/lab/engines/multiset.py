"""Two results compared as multisets, in DuckDB: rows that are missing, and rows that are too many.

Rows are grouped by all their columns and counted, so it is exact, unlike a checksum, and takes memory for all
distinct rows; DuckDB spills them if need be.
"""

from typing import NamedTuple

import duckdb

_COUNT = '"wanted minus found"'
"""A name that no column has."""


class MultisetDifference(NamedTuple):
    missing: int
    extra: int


def multiset_difference(database: duckdb.DuckDBPyConnection, wanted: str, found: str) -> MultisetDifference:
    """`wanted` and `found` are queries with columns of the same names."""
    columns = ", ".join(f'"{name}"' for name in database.sql(f"FROM ({wanted}) LIMIT 0").columns)
    counts = (
        f"SELECT sum({_COUNT}) AS {_COUNT} FROM (SELECT {columns}, 1 AS {_COUNT} FROM ({wanted}) UNION ALL "
        f"SELECT {columns}, -1 AS {_COUNT} FROM ({found})) GROUP BY {columns}"
    )
    ((missing, extra),) = database.sql(
        f"SELECT coalesce(sum({_COUNT}) FILTER ({_COUNT} > 0), 0), "
        f"coalesce(-sum({_COUNT}) FILTER ({_COUNT} < 0), 0) FROM ({counts})"
    ).fetchall()
    return MultisetDifference(int(missing), int(extra))
