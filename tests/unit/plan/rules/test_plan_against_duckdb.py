"""A plan, carried out step by step as the engine does, gives what DuckDB gives for the view itself."""

from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kit.carried_out import carry_out
from kit.examples import tries
from spillway.model.schema import Column, parse_ddl
from spillway.model.view import View
from spillway.plan.rules.planner import plan_view

DDL = "k int, j int, x int, y int, s string"
TABLES = ("a", "b", "c", "d")
CATALOG: dict[str, tuple[Column, ...]] = {table: parse_ddl(DDL) for table in TABLES}
SCHEMA = pa.schema([(name, pa.int32()) for name in "kjxy"] + [("s", pa.string())])

VIEWS = [
    "SELECT a.x AS p, b.y AS q FROM a JOIN b ON a.k = b.k",
    "SELECT a.x AS p, b.y AS q, c.s AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.x > 1",
    "SELECT a.x FROM a, b, c WHERE a.k = b.k AND a.j = b.j AND c.k = b.k AND (a.x < b.y OR c.s IS NULL)",
    "SELECT l.x AS p, r.x AS q FROM a l JOIN a r ON l.k = r.k AND l.j = r.j WHERE l.x <= r.x",
    "SELECT k, a.x + b.y AS n, upper(a.s) || b.s AS t FROM a JOIN b USING (k)",
    "SELECT a.x FROM a, b WHERE a.k = b.k AND a.k = b.j AND b.x = a.j",
    "SELECT CASE WHEN b.y <> 0 THEN a.x / b.y ELSE 0 END AS n FROM a JOIN b ON a.k = b.k",
    "SELECT coalesce(a.x, b.y, c.x, d.y) AS n FROM a, b, c, d WHERE a.s = b.s AND c.s = d.s AND d.s = a.s",
    "SELECT a.x FROM a JOIN b ON a.k + 1 = b.k AND lower(a.s) = b.s WHERE NOT (a.x = b.x AND a.y > b.y)",
    "SELECT least(a.x, b.x) AS n, a.x + b.x IN (1, 2, 3) AS m FROM a JOIN b ON b.k = a.k",
    "SELECT 7 AS q, a.x BETWEEN b.x AND b.y AS n FROM a JOIN b ON a.k = b.k WHERE 1 = 1 AND a.s LIKE 'a%'",
]

number = st.one_of(st.none(), st.integers(0, 3))
row = st.tuples(number, number, number, number, st.sampled_from([None, "a", "A", "ab", ""]))
data = st.fixed_dictionaries({table: st.lists(row, max_size=6) for table in TABLES})


def test_same_rows() -> None:
    """Every view over the same tables: drawing and registering them costs more than a view."""
    plans = {sql: plan_view(View.sql(sql), CATALOG) for sql in VIEWS}
    with duckdb.connect(config={"threads": 1}) as database:

        @tries(2)
        @given(data)
        def check(rows: dict[str, list[tuple[Any, ...]]]) -> None:
            for table, values in rows.items():
                columns = list(zip(*values, strict=True)) or [()] * len(SCHEMA)
                arrays = [pa.array(list(one), kind) for one, kind in zip(columns, SCHEMA.types, strict=True)]
                database.register(table, pa.Table.from_arrays(arrays, schema=SCHEMA))
            for sql, plan in plans.items():
                expected = database.execute(sql).fetchall()
                assert sorted(map(repr, carry_out(plan, database))) == sorted(map(repr, expected)), sql

        check()
