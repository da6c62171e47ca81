"""Types that are found without Spark are the types that Spark finds, for every expression that is claimed."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from spillway.model.schema import parse_ddl
from spillway.plan.rules.function_types import _SIGNATURES as FUNCTIONS
from spillway.plan.rules.source_types import source_type
from spillway.plan.sql.parse import parse_expression
from spillway.plan.sql.render import source_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "b boolean, i1 tinyint, i2 smallint, i4 int, i8 bigint, f float, d double, p10 decimal(10,2), "
    "p38 decimal(38,10), p5 decimal(5,0), s string, x binary, day date, ts timestamp, tn timestamp_ntz, "
    "pt struct<x:int,y:string,n:struct<z:decimal(5,1)>>, many array<int>, m map<string,bigint>"
)
COLUMNS = parse_ddl(SCHEMA)
ATOMS = st.sampled_from(
    [
        *(column.name for column in COLUMNS),
        *("pt.x", "pt.y", "pt.n.z", "pt.n", "pt.nope", "nope"),
        *(
            "1",
            "0",
            "-7",
            "300",
            "5000000000",
            "12L",
            "3S",
            "2.5",
            "0.001",
            "-1.50",
            "1e3",
            "2D",
            "NULL",
            "TRUE",
        ),
        *(
            "''",
            "'abc'",
            "'2024-01-01'",
            "DATE '2024-01-01'",
            "TIMESTAMP '2024-01-01 00:00:00'",
            "99999999999999999999",
        ),
    ]
)
TYPES = st.sampled_from(
    ["boolean", "tinyint", "int", "bigint", "float", "double", "decimal(12,3)", "decimal", "string", "binary",
     "date", "timestamp", "timestamp_ntz", "array<int>"]
)  # fmt: skip
INTERVALS = st.sampled_from(
    ["INTERVAL 1 DAY", "INTERVAL '2' HOUR", "INTERVAL 3 MONTH", "INTERVAL '1-2' YEAR TO MONTH"]
)
OTHERS = (
    "upper",
    "lower",
    "length",
    "abs",
    "concat",
    "coalesce",
    "nullif",
    "least",
    "greatest",
    "isnull",
    "nvl",
)


def larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two, three = st.tuples(parts, parts), st.tuples(parts, parts, parts)
    infix = st.sampled_from(
        [
            "+",
            "-",
            "*",
            "/",
            "%",
            "=",
            "<>",
            "<",
            ">=",
            "<=>",
            "AND",
            "OR",
            "||",
            "DIV",
            "&",
            "IS DISTINCT FROM",
        ]
    )
    names = st.sampled_from([*sorted(FUNCTIONS), *OTHERS, "soundex", "now"])
    return st.one_of(
        st.tuples(parts, infix, parts).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(parts, infix, parts).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(names, st.lists(parts, min_size=1, max_size=3)).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        st.tuples(parts, TYPES).map(lambda t: f"CAST({t[0]} AS {t[1]})"),
        st.tuples(parts, TYPES).map(lambda t: f"TRY_CAST({t[0]} AS {t[1]})"),
        st.tuples(parts, INTERVALS).map(lambda t: f"({t[0]} + {t[1]})"),
        parts.map(lambda t: f"(NOT {t})"),
        parts.map(lambda t: f"(- {t})"),
        parts.map(lambda t: f"({t} IS NULL)"),
        parts.map(lambda t: f"({t} LIKE 'a%')"),
        parts.map(lambda t: f"trim({t})"),
        two.map(lambda t: f"substring({t[0]}, 1, {t[1]})"),
        two.map(lambda t: f"timestampdiff(MICROSECOND, {t[0]}, {t[1]})"),
        three.map(lambda t: f"({t[0]} BETWEEN {t[1]} AND {t[2]})"),
        three.map(lambda t: f"({t[0]} IN ({t[1]}, {t[2]}))"),
        three.map(lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END"),
        three.map(lambda t: f"CASE {t[0]} WHEN {t[1]} THEN {t[2]} END"),
        three.map(lambda t: f"if({t[0]}, {t[1]}, {t[2]})"),
    )


WILD = st.recursive(ATOMS, larger, max_leaves=3)
"""Anything, most of it nonsense."""


def made(form: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda given_parts: form.format(*given_parts))


def choice(*words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words)


Kinds = dict[str, st.SearchStrategy[str]]


def deeper(of: Kinds) -> Kinds:
    """Expressions of each kind whose parts are expressions of the kinds `of`."""
    number, text, moment, truth = of["number"], of["text"], of["time"], of["truth"]
    return {
        "number": st.one_of(
            number,
            made("({} {} {})", number, choice("+", "-", "*", "/", "%"), number),
            made("({} {} {})", number, choice("+", "-", "*", "/", "%"), number),
            made("(- {})", number),
            made("abs({})", number),
            made("{}({}, {})", choice("coalesce", "least", "greatest", "nullif", "nvl"), number, number),
            made("CASE WHEN {} THEN {} ELSE {} END", truth, number, number),
            made("CAST({} AS {})", st.one_of(number, text, truth), choice("int", "double", "decimal(12,3)")),
            made("length({})", text),
            made("{}({})", choice("year", "month", "weekday"), moment),
        ),
        "text": st.one_of(
            text,
            made("({} || {})", text, text),
            made("{}({})", choice("upper", "lower", "trim", "reverse", "initcap"), text),
            made("{}({}, {})", choice("concat", "coalesce", "nullif", "greatest", "replace"), text, text),
            made("substring({}, {}, 2)", text, choice("1", "i4", "i8", "-3")),
            made("CAST({} AS string)", st.one_of(number, moment, truth, choice("x"))),
            made("if({}, {}, {})", truth, text, text),
        ),
        "time": st.one_of(
            moment,
            made("({} {} {})", moment, choice("+", "-"), INTERVALS),
            made("CAST({} AS {})", st.one_of(moment, text), choice("date", "timestamp", "timestamp_ntz")),
            made("{}({}, {})", choice("coalesce", "least", "greatest"), moment, moment),
            made("date_trunc('hour', {})", moment),
        ),
        "truth": st.one_of(
            truth,
            *(made("({} {} {})", kind, choice("=", "<>", "<", ">=", "<=>"), kind) for kind in of.values()),
            made("({} {} {})", truth, choice("AND", "OR"), truth),
            made("(NOT {})", truth),
            made("({} IS NULL)", st.one_of(number, text, WILD)),
            made("({} LIKE 'a%')", text),
            made("({} IN ({}, {}))", number, number, number),
            made("({} BETWEEN {} AND {})", number, number, number),
        ),
    }


SIMPLE: Kinds = {
    "number": choice(
        "i1", "i2", "i4", "i8", "f", "d", "p10", "p38", "p5", "pt.x", "pt.n.z", "1", "-7", "2.5", "1e3", "12L"
    ),
    "text": choice("s", "pt.y", "'abc'", "''", "s"),
    "time": choice("day", "ts", "tn", "ts", "DATE '2024-01-01'"),
    "truth": choice("b", "TRUE", "b"),
}
EXPRESSIONS = st.one_of(*deeper(deeper(deeper(SIMPLE))).values(), WILD)


@pytest.fixture(scope="module")
def rows(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame([], SCHEMA)


def spark_type(rows: "DataFrame", sql: str) -> str:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    try:
        return rows.select(F.expr(sql)).schema.fields[0].dataType.simpleString()
    except PySparkException as error:
        return f"refused: {str(error).splitlines()[0]}"


def check(rows: "DataFrame", text: str) -> bool:
    node = parse_expression(text)
    if node is None:
        return False
    sql = source_sql(node)
    known = source_type(sql, COLUMNS)
    if known is None:
        return False
    assert known == spark_type(rows, sql), sql
    return True


@given(EXPRESSIONS)
@settings(max_examples=5 * settings().max_examples)
@example("(p10 * 2)")
@example("coalesce(p10, 0)")
@example("(NULL + NULL)")
@example("(s || NULL)")
def test_expressions(rows: "DataFrame", text: str) -> None:
    event("known" if check(rows, text) else "left to Spark")


SAMPLES = {kind: column.name for column in COLUMNS for kind in [column.type]}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function(rows: "DataFrame", name: str) -> None:
    for arguments in FUNCTIONS[name][0]:
        given_arguments = ", ".join(SAMPLES[kind] for kind in arguments)
        unit = "MICROSECOND, " if name == "timestampdiff" else ""
        assert check(rows, f"{name}({unit}{given_arguments})"), name


@pytest.mark.parametrize("source", [column.name for column in COLUMNS])
def test_every_cast(rows: "DataFrame", source: str) -> None:
    known = [target for target in SAMPLES if check(rows, f"CAST({source} AS {target})")]
    assert known or source in ("pt", "many", "m")


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%", "=", "<", "<=>"])
def test_every_pair_of_numbers(rows: "DataFrame", operator: str) -> None:
    numbers = ["i1", "i2", "i4", "i8", "f", "d", "p10", "p38", "p5", "3", "-1.5", "NULL", "7L", "1e0"]
    known = [check(rows, f"{left} {operator} {right}") for left in numbers for right in numbers]
    assert sum(known) > len(known) / 2
