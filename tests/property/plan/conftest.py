"""A DuckDB database with the sources of random queries."""

from collections.abc import Iterator

import duckdb
import pytest

from kit.random_queries import CATALOG


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for source, columns in CATALOG.items():
            own = ", ".join(f"{column.name} {column.type}" for column in columns)
            connection.execute(f"CREATE TABLE {source} ({own})")
        yield connection
