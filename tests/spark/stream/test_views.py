"""Random views over random streams, on Spark, give DuckDB's rows: every row, as often, and no other."""

import random
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import settings

from kit.examples import examples
from spillway.model.view import View

if TYPE_CHECKING:
    from conftest import Lab

MOST_RESULTS = 8_000
WORDS = ("", "a", "ab", "Abc", "zebra", "ä", "a" * 40)
KEY_TYPES: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "decimal": pa.decimal128(12, 2),
    "double": pa.float64(),
}


def key_value(kind: str, number: int) -> Any:
    if kind == "string":
        return WORDS[number % len(WORDS)] + str(number // len(WORDS))
    if kind == "decimal":
        return Decimal(number * 25 - 50) / 100
    return float(number) / 2 if kind == "double" else number * 1_000_003 % 2_000_003


def random_epoch(seed: random.Random, kinds: tuple[str, str], rows: int, keys: int, first: int) -> pa.Table:
    def key(kind: str, domain: int) -> Any:
        if seed.random() < 0.1:
            return None
        hot = seed.random() < 0.3
        return key_value(kind, 0 if hot else seed.randrange(domain))

    def maybe(value: Any) -> Any:
        return None if seed.random() < 0.15 else value

    return pa.table(
        {
            "k": pa.array([key(kinds[0], keys) for _ in range(rows)], KEY_TYPES[kinds[0]]),
            "j": pa.array([key(kinds[1], 2) for _ in range(rows)], KEY_TYPES[kinds[1]]),
            "id": pa.array(range(first, first + rows), pa.int64()),
            "x": pa.array([maybe(seed.randrange(10)) for _ in range(rows)], pa.int32()),
            "s": pa.array([maybe(seed.choice(WORDS)) for _ in range(rows)], pa.string()),
            "d": pa.array(
                [maybe(Decimal(seed.randrange(-999, 999)) / 100) for _ in range(rows)], pa.decimal128(10, 2)
            ),
        }
    )


def random_sql(seed: random.Random, inputs: int, *, composite: bool) -> str:
    """A view of the supported kind; every clause is one that DuckDB and Spark agree on."""
    names = [f"s{number}" for number in range(inputs)]

    def equal(left: str, right: str) -> str:
        both = [left, right] if seed.random() < 0.5 else [right, left]
        parts = [f"{both[0]}.k = {both[1]}.k"] + [f"{left}.j = {right}.j"] * composite
        return " AND ".join(parts)

    def two() -> tuple[str, str]:
        left, right = seed.sample(names, 2)
        return left, right

    (a, b), (c, d), (e, f) = two(), two(), two()
    items = [f"{name}.id AS {name}_id" for name in names] + seed.sample(
        [
            f"{a}.x + {b}.x * 2 AS n",
            f"upper({c}.s) || {d}.s AS t",
            f"coalesce({e}.d, {f}.d) AS m",
            f"{a}.d - {d}.d AS difference",
            f"{a}.d * (1 - {b}.d) - {c}.d * {d}.x AS profit",
            f"CASE WHEN {b}.x > {c}.x THEN {b}.s ELSE {c}.s END AS chosen",
            f"{e}.k AS key",
            f"length({f}.s) AS size",
            f"{d}.s IS NULL AS missing",
        ],
        seed.randrange(5),
    )
    filters = seed.sample(
        [
            f"{a}.x > 1",
            f"{b}.s LIKE 'a%'",
            f"({c}.s IS NOT NULL OR {c}.x = 3)",
            f"{d}.d BETWEEN -5 AND 9.5",
            f"{e}.x IN (0, 2, 4, 6, 8, 9)",
        ],
        seed.randrange(3),
    )
    residuals = seed.sample(
        [
            f"{c}.x <= {d}.x",
            f"{e}.x + {f}.x <> 7",
            f"({a}.x < {b}.x OR {b}.s IS NULL)",
            f"NOT ({c}.d > {e}.d AND {c}.s = {e}.s)" if c != e else f"{c}.d < 9",
        ],
        seed.randrange(3),
    )
    joins = [(names[seed.randrange(number)], names[number]) for number in range(1, inputs)]
    if seed.random() < 0.5:
        conditions = [equal(*pair) for pair in joins] + filters + residuals
        seed.shuffle(conditions)
        return f"SELECT {', '.join(items)} FROM {', '.join(names)} WHERE {' AND '.join(conditions)}"
    text = f"SELECT {', '.join(items)} FROM {names[0]}"
    for pair in joins:
        text += f" JOIN {pair[1]} ON {equal(*pair)}"
    conditions = filters + residuals
    return text + (f" WHERE {' AND '.join(conditions)}" if conditions else "")


def nested(seed: random.Random, sql: str, inputs: int) -> str:
    """A flat view with WITH queries and derived tables around its sources and itself; the same rows or fewer.

    The queries are named like the sources that they read.
    """
    queries = []
    for number in seed.sample(range(inputs), seed.randint(1, inputs - 1)):
        source = f"s{number}"
        where = seed.choice(("", " WHERE x IS NULL OR x > 0", " WHERE coalesce(s, 'b') <> 'zebra'"))
        columns = ("k, j, id, x, s, d", "s, d, id, upper(s) AS u, k, x, j", "k, j, id + 0 AS id, x, s, d")
        query = f"SELECT {seed.choice(columns)} FROM {source}{where}"
        if seed.random() < 0.3:
            query = f"SELECT t.* FROM ({query}) t WHERE t.id IS NOT NULL"
        queries.append(f"{source} AS ({query})")
    text = f"WITH {', '.join(queries)} {sql}"
    return text if seed.random() < 0.5 else f"SELECT v.* FROM ({text}) v WHERE v.s0_id % 7 <> 0"


def random_case(seed: random.Random, lab: "Lab", *, is_nested: bool = False) -> tuple[str, "Counter[Any]"]:
    """A view and streams whose result is neither empty nor huge."""
    while True:
        inputs = seed.randint(3, 8)
        composite = seed.random() < 0.4
        kind, second = seed.choice(list(KEY_TYPES)), seed.choice(("int", "string"))
        keys = seed.choice((3, 8, 20))
        lab.tables.clear()
        for number in range(inputs):
            widened = "int" if kind == "bigint" and number % 2 else kind
            epochs = [seed.choice((0, 0, 3, 9, 14)) for _ in range(seed.randint(1, 4))]
            lab.tables[f"s{number}"] = [
                random_epoch(seed, (widened, second), rows, keys, 1_000 * number + 100 * epoch)
                for epoch, rows in enumerate(epochs)
            ]
        sql = random_sql(seed, inputs, composite=composite)
        if is_nested:
            sql = nested(seed, sql, inputs)
        expected = lab.duckdb(sql)
        if 20 <= sum(expected.values()) <= MOST_RESULTS:
            tables, lab.tables = lab.tables, {}
            for name, made in tables.items():
                lab.stream(name, *made)
            return sql, expected


@pytest.mark.parametrize("number", range(settings().max_examples // 8))
def test_a_random_view_is_duckdbs(lab: "Lab", number: int) -> None:
    seed = random.Random(1_000 + number)
    sql, expected = random_case(seed, lab)
    rows = sum(table.num_rows for tables in lab.tables.values() for table in tables)
    total = sum(expected.values())
    sink = ("delta", "parquet")[number % 2]
    groups = seed.choice((5, 32, 256))
    limits = {
        "epoch_rows": seed.choice((max(4, rows // 8), 500_000)),
        "epoch_results": seed.choice((max(10, total // 5), 4_000_000)),
    }
    print(sql, limits, groups)  # shown when the test fails
    processors = [seed.randint(1, 4) for _ in range(2)]
    if number % 3 == 0:
        lab.run_epochs(sql, seed.randint(1, 4), sink=sink, groups=groups, processors=processors[0], **limits)
    summary = lab.run(sql, sink=sink, groups=groups, processors=processors[1], **limits)
    assert lab.results(sink) == expected
    assert summary["pending_rows"] == 0
    assert summary["results_runtime"] == total
    assert summary["input_rows"] <= rows


@pytest.mark.parametrize("number", range(examples(10)))
def test_a_random_view_of_derived_tables_is_duckdbs(lab: "Lab", number: int) -> None:
    seed = random.Random(3_000 + number)
    sql, expected = random_case(seed, lab, is_nested=True)
    print(sql)  # shown when the test fails
    lab.run(sql, groups=seed.choice((5, 256)), processors=seed.randint(1, 3), epoch_rows=60)
    assert lab.results() == expected


def test_a_built_view_is_the_same_view(lab: "Lab") -> None:
    seed = random.Random(7)
    for name in "abc":
        lab.stream(name, *(random_epoch(seed, ("string", "int"), 20, 4, 0) for _ in range(2)))
    built = (
        View.of("a")
        .join("b x", on="a.k = x.k")
        .join("c", on="c.k = x.k")
        .where("a.x < x.x")
        .select("a.id AS p", "x.id AS q", "c.s")
    )
    lab.run(built, processors=2)
    expected = lab.duckdb(
        "SELECT a.id AS p, x.id AS q, c.s FROM a, b x, c WHERE a.k = x.k AND c.k = x.k AND a.x < x.x"
    )
    assert expected
    assert lab.results() == expected


def test_a_stream_joined_with_itself(lab: "Lab") -> None:
    seed = random.Random(8)
    lab.stream("a", *(random_epoch(seed, ("int", "int"), 25, 6, 100 * n) for n in range(3)))
    sql = "SELECT l.id AS p, m.id AS q, r.id FROM a l, a m, a r WHERE l.k = m.k AND r.k = m.k AND l.x < r.x"
    lab.run(sql, processors=3, groups=16)
    assert lab.results() == lab.duckdb(sql)


def test_inputs_of_which_only_the_key_matters(lab: "Lab") -> None:
    seed = random.Random(9)
    for name in "abc":
        lab.stream(name, *(random_epoch(seed, ("bigint", "int"), 15, 5, 0) for _ in range(3)))
    sql = "SELECT a.id, 1 AS one FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
    lab.run_epochs(sql, 1, processors=2, epoch_rows=12, epoch_results=200)
    lab.run(sql, processors=1, epoch_rows=20, epoch_results=500)
    assert lab.results() == lab.duckdb(sql)


def test_streams_without_a_row_and_streams_that_begin_late(lab: "Lab") -> None:
    """Empty epochs commit, join nothing, and lose nothing of what comes after them."""
    seed = random.Random(10)
    empty = random_epoch(seed, ("int", "int"), 0, 5, 0)
    lab.stream("a", empty, empty, random_epoch(seed, ("int", "int"), 20, 3, 0))
    lab.stream("b", random_epoch(seed, ("int", "int"), 20, 3, 0), empty)
    lab.stream("c", empty)
    sql = "SELECT a.id AS p, b.id AS q, c.id AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
    assert lab.run(sql, processors=2)["results_runtime"] == 0
    assert lab.results() == Counter()
    lab.stream("c", random_epoch(seed, ("int", "int"), 10, 3, 0))
    summary = lab.run(sql, processors=2)
    assert lab.results() == lab.duckdb(sql)
    assert summary["results_runtime"] == sum(lab.results().values()) > 0


def test_column_names_that_need_quotes_or_look_like_ours(lab: "Lab") -> None:
    names = ["k0", "h", "t", "c0", "s0_0", "p", "Select", "a b", "x.y", "ö"]
    for name in "abc":
        lab.stream(name, pa.table({column: pa.array([1, 2, 2, None], pa.int64()) for column in names}))
    sql = (
        "SELECT a.h AS h, b.t AS t, c.c0 AS c0, a.`Select` AS s, b.`a b` AS ab, c.`x.y` AS xy, a.`ö` AS o, "
        "b.s0_0 AS s0_0, c.p AS p FROM a, b, c WHERE a.k0 = b.`x.y` AND b.`x.y` = c.k0"
    )
    lab.run(sql, processors=2)
    assert lab.results() == lab.duckdb(sql.replace("`", '"'))
