"""Every refusal is one line, names what is wrong and quotes it."""

import pytest

from spillway.errors import ViewError
from spillway.model.schema import parse_ddl
from spillway.model.view import View
from spillway.plan.rules.planner import plan_view

CATALOG = {
    "a": parse_ddl(
        "k long, j int, id long, x int, s string, d decimal(10,2), arr array<int>, st struct<f:int>"
    ),
    "b": parse_ddl("k long, j int, id long, y int, s string"),
    "c": parse_ddl("k long, id long, t string"),
    "v": parse_ddl("k long, d decimal(38,2), day date, ts timestamp"),
    "w": parse_ddl("k long, d decimal(38,2), day date, ts timestamp"),
}
JOINED = "FROM a JOIN b ON a.k = b.k"
WIDE = "FROM v JOIN w ON v.k = w.k"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT a.id FROM a LEFT JOIN b ON a.k = b.k", "LEFT JOIN is not supported yet"),
        ("SELECT a.id FROM a FULL OUTER JOIN b ON a.k = b.k", "FULL OUTER JOIN is not supported yet"),
        ("SELECT a.id FROM a LEFT SEMI JOIN b ON a.k = b.k", "LEFT SEMI JOIN is not supported yet"),
        ("SELECT a.id FROM a LEFT ANTI JOIN b ON a.k = b.k", "LEFT ANTI JOIN is not supported yet"),
        ("SELECT a.id FROM a NATURAL JOIN b",
         "NATURAL JOIN is not supported yet: NATURAL JOIN b (line 1, column 20); write JOIN"),
        ("SELECT a.id FROM a CROSS JOIN b", "needs an equi-join between a and b"),
        ("SELECT a.id FROM a JOIN b ON a.k < b.k",
         "needs an equi-join between a and b; a.k < b.k is not one"),
        ("SELECT a.id FROM a, b, c WHERE a.k = b.k", "needs an equi-join between a, b and c"),
        (f"SELECT count(*) AS n {JOINED}", "an aggregate is not supported yet: count(*)"),
        (f"SELECT a.id {JOINED} GROUP BY a.id", "GROUP BY is not supported yet: GROUP BY a.id"),
        (f"SELECT a.id {JOINED} HAVING a.id > 1", "HAVING is not supported yet"),
        (f"SELECT DISTINCT a.id {JOINED}", "DISTINCT is not supported yet"),
        (f"SELECT a.id {JOINED} ORDER BY a.id", "ORDER BY is not supported yet: ORDER BY a.id"),
        (f"SELECT a.id {JOINED} LIMIT 3", "LIMIT is not supported yet: LIMIT 3"),
        (f"SELECT a.id {JOINED} UNION ALL SELECT a.id {JOINED}", "UNION ALL is not supported yet"),
        (f"SELECT a.id {JOINED} UNION SELECT a.id {JOINED}", "UNION is not supported yet"),
        (f"SELECT a.id {JOINED} EXCEPT SELECT a.id {JOINED}", "EXCEPT is not supported yet"),
        (f"WITH q AS (SELECT 1) SELECT a.id {JOINED}", "this one has no FROM: SELECT 1"),
        (f"SELECT a.id {JOINED} WHERE a.id IN (SELECT id FROM c)", "IN with a subquery is not supported yet"),
        (f"SELECT a.id {JOINED} WHERE EXISTS (SELECT 1 FROM c)",
         "EXISTS with a subquery is not supported yet"),
        (f"SELECT a.id {JOINED} WHERE a.id > (SELECT 1 FROM c)", "a scalar subquery is not supported yet"),
        (f"SELECT sum(a.x) OVER (PARTITION BY a.k) AS n {JOINED}", "a window function is not supported yet"),
        ("SELECT a.id FROM a LATERAL VIEW explode(arr) t AS e JOIN b ON a.k = b.k",
         "LATERAL VIEW is not supported"),
        ("VALUES (1), (2)", "VALUES is not supported yet"),
        (f"SELECT explode(a.arr) AS e {JOINED}", "a generator is not supported yet: explode(a.arr)"),
        ("SELECT a.id FROM a, b TABLESAMPLE (10 PERCENT) WHERE a.k = b.k",
         "TABLESAMPLE is not supported yet"),
        (f"SELECT /*+ BROADCAST(b) */ a.id {JOINED}", "a hint is not supported yet"),
        ("SELECT a.id FROM range(10) a JOIN b ON a.id = b.id", "a table function in FROM is not supported"),
        (f"SELECT * EXCEPT (id) {JOINED}", "name the columns you want"),
        (f"SELECT a.id {JOINED} WHERE a.x = :limit", "a view has no parameters"),
        ("INSERT INTO c SELECT 1", "a view is a SELECT"),
        ("SELECT a.id FROM a", "reads only a"),
        ("SELECT 1", "has no FROM"),
        (f"SELECT rand() AS r {JOINED}", "rand() gives another value each time"),
        (f"SELECT a.id {JOINED} WHERE a.s < current_timestamp()", "current_timestamp() gives another value"),
        (f"SELECT current_date AS r {JOINED}", "CURRENT_DATE gives another value"),
        (f"SELECT unix_timestamp() AS r {JOINED}", "unix_timestamp() gives another value"),
        ("SELECT a.id FROM a JOIN bb ON a.k = bb.k", "unknown source bb in FROM; did you mean b?"),
        ("SELECT a.id FROM a JOIN a ON a.k = a.k", "two inputs are called a"),
        (f"SELECT a.idd {JOINED}", "unknown column a.idd; did you mean a.id"),
        (f"SELECT idd {JOINED}", "unknown column idd; did you mean id"),
        (f"SELECT q.id {JOINED}", "unknown input q in q.id; available: a, b"),
        (f"SELECT q.* {JOINED}", "unknown input in q.*"),
        (f"SELECT id {JOINED}", "ambiguous column id: write a.id or b.id"),
        (f"SELECT * {JOINED}", "two result columns are called k: a.k and b.k; alias one of them: b.k AS b_k"),
        (f"SELECT a.id, b.ID {JOINED}", "two result columns are called"),
        ("SELECT a.id FROM a JOIN b USING (x)", "the right side has no x"),
        ("SELECT a.id FROM a JOIN b ON a.k = b.k JOIN c USING (k)", "it can be a.k and b.k"),
        ("SELECT a.id FROM a JOIN b ON a.k = b.s", "key type mismatch: a.k is bigint, b.s is string"),
        ("SELECT a.id FROM a JOIN b ON a.st = b.k", "cannot be a join key"),
        (f"SELECT power(a.x, b.y) AS m {JOINED}", "power(a.x, b.y) is not supported over several inputs"),
        (f"SELECT a.s || b.s ILIKE 'a' AS m {JOINED}", "write lower(text) LIKE"),
        (f"SELECT a.s || b.s RLIKE 'a' AS m {JOINED}", "Java's regular expressions"),
        (f"SELECT a.s || b.s LIKE 'a' ESCAPE '##' AS m {JOINED}", "must be one character"),
        (f"SELECT substring(a.s || b.s, a.x) AS m {JOINED}", "combines a and b"),
        (f"SELECT ltrim(a.s || b.s, 'x') AS m {JOINED}", "combines a and b"),
        (f"SELECT trim(5 FROM a.s || b.s) AS m {JOINED}", "combines a and b"),
        (f"SELECT trim(a.s || b.s, 'x') AS m {JOINED}", "combines a and b"),
        (f"SELECT replace(a.s || b.s, 1) AS m {JOINED}", "combines a and b"),
        (f"SELECT round(a.x / b.y, 1) AS m {JOINED}", "round(double, 1) is not supported"),
        (f"SELECT -(v.d + w.d) AS m {WIDE}", "- of decimal(38,2) is refused, for Spark rounds it to 34"),
        (f"SELECT coalesce(v.day, w.day) - v.day AS m {WIDE}", "write datediff(a, b)"),
        (f"SELECT v.ts - w.ts AS m {WIDE}", "write unix_micros(a) - unix_micros(b)"),
        (f"SELECT year(coalesce(v.ts, w.ts)) AS m {WIDE}", "cast the columns to timestamp_ntz"),
        (f"SELECT coalesce(v.ts, w.ts) + INTERVAL 1 DAY AS m {WIDE}", "session's time zone"),
        (f"SELECT date_trunc('day', coalesce(v.ts, w.ts)) AS m {WIDE}", "session's time zone"),
        (f"SELECT coalesce(v.day, w.day) + INTERVAL '1-2' YEAR TO MONTH AS m {WIDE}", "a constant INTERVAL"),
        (f"SELECT a.x + b.y < 12345678901234567890.5 AS m {JOINED}", "outside bigint"),
        (f"SELECT a.id {JOINED} WHERE a.s > b.y", "a.s > b.y: string and int do not mix"),
        (f"SELECT a.id {JOINED} WHERE a.x + b.y", "a condition must be boolean"),
        (f"SELECT regexp_extract(a.s, b.s) AS m {JOINED}", "regexp_extract(a.s, b.s) combines a and b"),
        (f"SELECT a.s LIKE b.s AS m {JOINED}", "a.s LIKE b.s combines a and b"),
        (f"SELECT concat(a.s, b.s) LIKE 'x\\\\y' AS m {JOINED}", "comes %, _ or another"),
        (f"SELECT transform(a.arr, k -> k + a.k) AS m {JOINED}", "the parameter k of k -> k + a.k"),
        (f"SELECT NULL AS n {JOINED}", "NULL of no type"),
        (f"SELECT a.id {JOINED} WHERE a.id >", "line 1, column"),
        ("SELECT a.id\nFRM a, b", "syntax error in the view's SQL, line 2"),
        ("SELECT a.id FROM a 'x", "is a quote left open?"),
        (f"SELECT a.id {JOINED}; SELECT 1", "several statements"),
        ("", "is empty"),
    ],
)  # fmt: skip
def test_refused(sql: str, words: str) -> None:
    with pytest.raises(ViewError) as refused:
        plan_view(View.sql(sql), CATALOG)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (
            View.of("a").join("b", on="a.k = b.k").where("a.x ) OR (a.x"),
            "syntax error in where('a.x ) OR (a.x')",
        ),
        (View.of("a").join("b", on="a.k ="), "syntax error in join(on='a.k =')"),
        (View.of("a, c").join("b", on="a.k = b.k"), "table 'a, c' is more than one"),
        (View.of("a").join("b", on="a.k = b.k").select("a.id, b.id AS i"), "pass each in its own call"),
        (View.of("a").join("b", on="a.k = b.k").where("a.x = 1 LIMIT 3"), "LIMIT is not supported yet"),
        (View(), "the view is empty"),
    ],
)
def test_a_fragment_cannot_leave_its_clause(view: View, words: str) -> None:
    with pytest.raises(ViewError) as refused:
        plan_view(view, CATALOG)
    assert words in str(refused.value)


NESTED = """SELECT t.k
FROM (SELECT k
      FROM a {}) t JOIN b ON t.k = b.k"""


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (NESTED.format("GROUP BY k"), "GROUP BY k (line 3, column 14); aggregate"),
        (NESTED.format("WHERE k > 1 LIMIT 3"), "LIMIT 3 (line 3, column 26)"),
        (NESTED.format("ORDER BY a.k"), "ORDER BY a.k (line 3, column 14)"),
        (NESTED.format("LEFT JOIN c USING (k)"), "LEFT JOIN c USING (k) (line 3, column 14)"),
        (NESTED.format("EXCEPT SELECT k FROM c"), "SELECT k FROM c (line 3, column 14)"),
        (NESTED.format("WHERE k NOT IN (SELECT k FROM c)"), "(line 3, column 26)"),
        (NESTED.format("WHERE EXISTS (SELECT 1 FROM c)"), "(line 3, column 20)"),
        ("WITH v AS (SELECT DISTINCT k FROM a) SELECT v.k FROM v JOIN b USING (k)", "(line 1, column 19)"),
        ("WITH v AS (SELECT k FROM a)\nSELECT DISTINCT v.k FROM v, b", "(line 2, column 8)"),
        ("SELECT DISTINCT k FROM (SELECT DISTINCT k FROM a) t", "(line 1, column 8)"),
        ("SELECT k, max(x) AS m FROM (SELECT * FROM a) t", "max(x) (line 1, column 11)"),
        ("WITH RECURSIVE v AS (SELECT k FROM a) SELECT * FROM v", "WITH RECURSIVE is not supported yet"),
        ("FROM a\n|> WHERE k > 1", "|> is not supported yet (line 2, column 1)"),
        ("SELECT k FROM (SELECT k FROM a) t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE is not supported yet"),
        ("SELECT t.k FROM a JOIN (b JOIN c USING (k)) ON a.k = b.k",
         "a join in parentheses is not supported yet"),
        ("SELECT k FROM a UNION ALL BY NAME SELECT k FROM b", "UNION BY NAME is not supported yet"),
        ("(SELECT k FROM a) LIMIT 1", "LIMIT is not supported yet"),
    ],
)  # fmt: skip
def test_a_refused_clause_has_a_place(sql: str, words: str) -> None:
    with pytest.raises(ViewError) as refused:
        plan_view(View.sql(sql), CATALOG)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT t.k FROM (SELECT k, id AS K FROM a) t JOIN b USING (k)", "two columns of t are called K"),
        ("WITH v (p, q) AS (SELECT k FROM a) SELECT * FROM v", "v names 2 columns, but its query has 1"),
        ("WITH v AS (SELECT k FROM a), V AS (SELECT k FROM b) SELECT * FROM v",
         "two WITH queries are called V"),
        ("WITH v AS (SELECT z.k FROM z), z AS (SELECT k FROM a) SELECT * FROM v",
         "unknown source z in FROM"),
        ("WITH v AS (SELECT k FROM a) SELECT k FROM other.v", "unknown source other.v in FROM"),
        ("SELECT t.j FROM (SELECT k FROM a) t JOIN b USING (k)", "unknown column t.j; did you mean t.k?"),
        ("SELECT a.k FROM (SELECT k FROM a) t JOIN b USING (k)", "unknown input a in a.k"),
        ("SELECT k FROM (SELECT k FROM a) t JOIN b ON t.k = b.k", "ambiguous column k: write t.k or b.k"),
        ("SELECT k FROM a UNION ALL SELECT k, id FROM b", "the sides of UNION ALL have 1 and 2 columns"),
        ("SELECT t.k FROM (SELECT k FROM a) t JOIN b USING (k) UNION ALL SELECT k FROM c",
         "UNION ALL is not supported yet"),
        ("SELECT t.k FROM (SELECT k FROM a) t", "a view joins at least two inputs; this one reads only a"),
        ("SELECT t.id FROM (SELECT id FROM a) t CROSS JOIN b", "needs an equi-join between a and b"),
        ("SELECT transform(t.arr, k -> k + t.z) AS n FROM (SELECT arr, k AS z, j FROM a) t JOIN b USING (j)",
         "the parameter k of k -> k + a.k is also a column that it uses"),
    ],
)  # fmt: skip
def test_names_of_derived_tables(sql: str, words: str) -> None:
    with pytest.raises(ViewError) as refused:
        plan_view(View.sql(sql), CATALOG)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "view",
    [
        View.of("a").join("b", on="a.k = b.k").where("a.x = 1 LIMIT 3"),
        View.of("a").join("b", on="a.k = b.k").where("a.x IN (SELECT 1 FROM c)").select("a.k"),
        View.of("(SELECT DISTINCT k FROM a) t").join("b", on="t.k = b.k"),
    ],
)
def test_a_built_view_has_no_lines(view: View) -> None:
    with pytest.raises(ViewError, match="is not supported yet") as refused:
        plan_view(view, CATALOG)
    assert "(line" not in str(refused.value)


def test_the_place_counts_windows_too() -> None:
    sql = "SELECT p.k FROM a p [RANGE 1 DAY] JOIN b [RANGE 1 DAY] USING (k) LIMIT 3"
    with pytest.raises(ViewError, match=rf"column {sql.index('LIMIT') + 1}\)"):
        plan_view(View.sql(sql), CATALOG)
