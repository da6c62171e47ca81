"""Relations have the rows of the statement that they were built from, before and after every rule, in DuckDB."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import duckdb
import pytest

from kit.algebra_sql import duckdb_sql
from kit.examples import examples
from kit.random_queries import CATALOG, RandomQuery, random_rows
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.algebra import RULES, Relation, build, simplified
from spillway.plan.rules import source_type
from spillway.plan.sql import parse_query

Rows = Counter[tuple[Any, ...]]

WRITTEN = {
    "union": "SELECT x, y FROM a UNION ALL SELECT x, z FROM b",
    "union filter": "SELECT * FROM (SELECT x, y FROM a UNION ALL SELECT x, z FROM b) t WHERE x = 1",
    "self join": "SELECT p.x, q.y FROM a p JOIN a q ON p.x = q.x WHERE p.y < q.y",
    "single": "SELECT * FROM a WHERE x <> 1 AND NOT (x > 2 AND y < 3)",
    "logic": "SELECT * FROM a WHERE NOT (x = 1 OR y = 1)",
    "names": "SELECT * FROM (SELECT a.x, b.x AS x2, a.s, b.s AS s2 FROM a JOIN b ON a.x = b.x) t WHERE s = 'a'",
    "a query named like its source": "WITH a AS (SELECT x, y FROM a WHERE y > 0) SELECT p.x, q.y FROM a p, a q WHERE p.x = q.x",
    "shadowed": "WITH v AS (SELECT x FROM a) SELECT t.x, u.x AS y FROM (WITH v AS (SELECT z AS x FROM b) SELECT x FROM v) t, v u WHERE t.x = u.x AND u.x > 0 AND t.x IS NOT NULL",
    "using": "SELECT x, t.y, u.z FROM (SELECT x, y FROM a) t JOIN (SELECT x, z FROM b) u USING (x)",
    "using twice": "SELECT x, y, z, w FROM (SELECT x, y FROM a) t JOIN (SELECT x, z FROM b) u USING (x) JOIN c USING (x, z)",
    "star of a join": "SELECT t.*, u.w FROM (SELECT y, x AS k FROM a) t JOIN (SELECT w, x AS k FROM c) u ON t.k = u.k",
    "nothing but a constant": "SELECT 1 AS one FROM (SELECT x FROM a) t, (SELECT z FROM b WHERE z > 1) u",
    "a constant as a key": "SELECT t.k, b.z FROM (SELECT 1 AS k, y FROM a) t JOIN b ON t.k = b.x",
    "unions in a union": "(SELECT x FROM a UNION ALL SELECT z FROM b) UNION ALL (SELECT w FROM c UNION ALL SELECT 7)".replace("SELECT 7", "SELECT 7 FROM a"),
    "types of a union": "SELECT x AS v FROM a UNION ALL SELECT q FROM d UNION ALL SELECT f FROM d UNION ALL SELECT x FROM d",
    "decimals of a union": "SELECT q AS v FROM d UNION ALL SELECT x FROM a UNION ALL SELECT NULL FROM b",
    "filter on a cast": "SELECT * FROM (SELECT x AS v FROM d UNION ALL SELECT q FROM d) t WHERE v > 1.5",
    "or over two inputs": "SELECT t.y, b.z FROM (SELECT * FROM a) t, b WHERE (t.x = b.x AND t.y = 1 AND b.z = 2) OR (t.x = b.x AND t.y = 2 AND b.z = 1)",
    "or with one side common": "SELECT t.y FROM (SELECT * FROM a) t, b WHERE t.x = b.x OR (t.x = b.x AND t.y = 1)",
    "a query used in a union and a join": "WITH v (k, n) AS (SELECT x, y + 1 FROM a UNION ALL SELECT x, z FROM b) SELECT l.k, r.n FROM v l JOIN v r ON l.k = r.k WHERE l.n < 3 UNION ALL SELECT k, n FROM v",
    "unused": "WITH v AS (SELECT x FROM a), w AS (SELECT x FROM v) SELECT * FROM w",
}  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for source, columns in CATALOG.items():
            own = ", ".join(f"{column.name} {column.type}" for column in columns)
            connection.execute(f"CREATE TABLE {source} ({own})")
        yield connection


def fill(database: duckdb.DuckDBPyConnection, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    for source, values in rows.items():
        database.execute(f"DELETE FROM {source}")
        if values:
            marks = ", ".join("?" for _ in CATALOG[source])
            database.executemany(f"INSERT INTO {source} VALUES ({marks})", values)


def rows_of(database: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    return Counter(database.execute(sql).fetchall())


def relation_of(sql: str, catalog: Mapping[str, tuple[Column, ...]] = CATALOG) -> Relation:
    return build(parse_query(View.sql(sql)), catalog, source_type)


def forms(sql: str) -> dict[str, Relation]:
    """The relation of a statement as built, after each rule alone, and after all of them."""
    built = relation_of(sql)
    alone = {rule.__name__: rule(built) for rule in RULES}
    return {"built": built, **alone, "simplified": simplified(built)}


def check(database: duckdb.DuckDBPyConnection, seed: Random, statements: Sequence[str], fillings: int) -> int:
    """Compare all forms of the statements over random rows; returns how many rows the statements had."""
    queries = {
        sql: {duckdb_sql(relation): name for name, relation in reversed(forms(sql).items())} for sql in statements
    }
    found = 0
    for _ in range(fillings):
        fill(database, {source: random_rows(seed, source) for source in CATALOG})
        for sql, own in queries.items():
            expected = rows_of(database, sql)
            found += expected.total()
            for query, name in own.items():
                assert rows_of(database, query) == expected, (name, sql, query)
    return found


def test_written_statements(database: duckdb.DuckDBPyConnection) -> None:
    assert check(database, Random(1), [*WRITTEN.values()], 10)


@pytest.mark.parametrize("part", range(8))
def test_random_statements(database: duckdb.DuckDBPyConnection, part: int) -> None:
    seed = Random(10_000 + part)
    statements = [RandomQuery(seed).sql for _ in range(examples())]
    assert check(database, seed, statements, 2)
