"""Relations have the rows of the statement that they were built from, before and after every rule."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from kit.algebra_sql import duckdb_sql
from kit.examples import examples
from kit.random_queries import CATALOG, RandomQuery, fill
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.algebra import RULES, Relation, build, simplified
from spillway.plan.rules import source_type
from spillway.plan.sql import parse_query

QUERIES = json.loads((Path(__file__).parents[2] / "fixtures" / "small_queries.json").read_text())

Rows = Counter[tuple[Any, ...]]

# Each is one statement; what is odd about it is said where it is not plain.
WRITTEN = (
    """
WITH a AS (SELECT x, y FROM a WHERE y > 0) -- named like the source that it reads
SELECT p.x, q.y FROM a p, a q WHERE p.x = q.x;

WITH v AS (SELECT x FROM a) -- and another v inside
SELECT t.x, u.x AS y FROM (WITH v AS (SELECT z AS x FROM b) SELECT x FROM v) t, v u
WHERE t.x = u.x AND u.x > 0 AND t.x IS NOT NULL;

SELECT x, t.y, u.z FROM (SELECT x, y FROM a) t JOIN (SELECT x, z FROM b) u USING (x);
SELECT x, y, z, w FROM (SELECT x, y FROM a) t JOIN (SELECT x, z FROM b) u USING (x) JOIN c USING (x, z);
SELECT t.*, u.w FROM (SELECT y, x AS k FROM a) t JOIN (SELECT w, x AS k FROM c) u ON t.k = u.k;
SELECT q.* FROM ((SELECT x, y FROM a) p (k, j)) q;

SELECT 1 AS one FROM (SELECT x FROM a) t, (SELECT z FROM b WHERE z > 1) u -- rows without columns
;
SELECT 1 AS one FROM (SELECT x FROM a UNION ALL SELECT x FROM b) t;
SELECT t.k, b.z FROM (SELECT 1 AS k, y FROM a) t JOIN b ON t.k = b.x;

(SELECT x FROM a UNION ALL SELECT z FROM b) UNION ALL (SELECT w FROM c UNION ALL SELECT 7 FROM a);
SELECT x AS v FROM a UNION ALL SELECT q FROM d UNION ALL SELECT f FROM d UNION ALL SELECT x FROM d;
SELECT q AS v FROM d UNION ALL SELECT x FROM a UNION ALL SELECT NULL FROM b;
SELECT * FROM (SELECT x AS v FROM d UNION ALL SELECT q FROM d) t WHERE v > 1.5;
SELECT x, x AS y FROM (SELECT x, y AS k FROM a UNION ALL SELECT z, z FROM b) t WHERE k > 1
UNION ALL SELECT z, z FROM b;

SELECT t.y, b.z FROM (SELECT * FROM a) t, b
WHERE (t.x = b.x AND t.y = 1 AND b.z = 2) OR (t.x = b.x AND t.y = 2 AND b.z = 1);
SELECT t.y FROM (SELECT * FROM a) t, b WHERE t.x = b.x OR (t.x = b.x AND t.y = 1);
SELECT t.k FROM (SELECT x = 1 OR y = 2 AS k, x FROM a) t, b WHERE t.k AND NOT t.k = (b.z > 1) AND t.x = b.x;
SELECT t.k FROM (SELECT x + 1 AS k, y - x AS j FROM a) t WHERE t.k * 2 - t.j > t.k - (t.j - 1);

WITH v (k, n) AS (SELECT x, y + 1 FROM a UNION ALL SELECT x, z FROM b)
SELECT l.k, r.n FROM v l JOIN v r ON l.k = r.k WHERE l.n < 3 UNION ALL SELECT k, n FROM v;

WITH v AS (SELECT x FROM a), w AS (SELECT x FROM v), unused AS (SELECT z FROM b) SELECT * FROM w;
""".strip()
    .rstrip(";")
    .split(";\n")
)


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
        sql: {duckdb_sql(relation): name for name, relation in reversed(forms(sql).items())}
        for sql in statements
    }
    found = 0
    for _ in range(fillings):
        fill(database, seed)
        for sql, own in queries.items():
            expected = rows_of(database, sql)
            found += expected.total()
            for query, name in own.items():
                assert rows_of(database, query) == expected, (name, sql, query)
    return found


def test_written_statements(database: duckdb.DuckDBPyConnection) -> None:
    assert check(database, Random(1), WRITTEN, 10)


def test_small_queries(database: duckdb.DuckDBPyConnection) -> None:
    """Those that the algebra can express, whether they run yet or not."""
    queries = [query["sql"] for query in QUERIES if query["refused"] in (None, "one source", "UNION ALL")]
    assert check(database, Random(2), queries, 20)


@pytest.mark.parametrize("part", range(8))
def test_random_statements(database: duckdb.DuckDBPyConnection, part: int) -> None:
    seed = Random(10_000 + part)
    statements = [RandomQuery(seed).sql for _ in range(examples())]
    assert check(database, seed, statements, 2)
