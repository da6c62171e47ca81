"""Expressions that workers evaluate have Spark's type and, in every row, Spark's value.

Each expression is taken apart down to its columns, as one over several inputs is, evaluated over random
columns full of nulls and extremes, and compared with Spark. Where a `try_` function of Spark gives null, the
evaluator refuses the row.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kit.examples import examples
from spillway.errors import ViewError
from spillway.model.schema import Column
from spillway.plan.expression import Expression, evaluate, spark_type
from spillway.plan.rules.source_expression import read_source_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 50
CASES = 130
"""Of a family and a seed; so many fit into one job of Spark."""
SEEDS = range(examples(40))
EXACT = Context(prec=80)
DECIMALS = {
    "p1": (1, 0), "p5": (5, 2), "p12": (12, 2), "p15": (15, 15), "p18": (18, 6), "p20": (20, 0),
    "p25": (25, 12), "whole": (38, 0), "wide": (38, 10), "deep": (38, 30), "tiny": (38, 38),
}  # fmt: skip
SHORT = ("p1", "p5", "p12", "p15")
NEGATED = tuple(name for name, (precision, _) in DECIMALS.items() if precision < 35)
INTEGERS = {"i1": 8, "i2": 16, "i4": 32, "i8": 64}
LITERALS = ("0", "7", "-300", "5000000000", "12L", "3S", "0.5", "-1.50", "0.001", "12345678901234567.5")
NUMBERS = (*DECIMALS, *INTEGERS, "d", "f", *LITERALS)
TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


@dataclass(frozen=True, slots=True)
class Case:
    """An expression, and how Spark is asked for it where the former would fail."""

    sql: str
    asked: str
    guarded: bool = False
    """Spark gives null for some rows that have a value."""


def case(sql: str) -> Case:
    return Case(sql, sql)


def random_columns(seed: random.Random) -> dict[str, pa.Array]:
    def column(kind: pa.DataType, value: Callable[[], Any]) -> pa.Array:
        return pa.array([None if seed.random() < 0.1 else value() for _ in range(ROWS)], kind)

    def decimal(precision: int, scale: int) -> Decimal:
        size = 10 ** seed.choice([precision, seed.randint(0, precision)])
        digits = seed.choice([size - 1, size // 10, seed.randrange(size), 0, 1])
        return Decimal(seed.choice([1, -1]) * digits).scaleb(-scale, EXACT)

    def integer(bits: int) -> int:
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        return seed.choice([low, high, 0, 1, -1, seed.randint(low, high), seed.randint(-99, 99)])

    def text() -> str:
        return "".join(seed.choices("aAbß x%_\\é\n😀", k=seed.randint(0, 8)))

    def day() -> date:  # 400 years around it are dates of Python too
        return date(1, 1, 1) + timedelta(seed.choice([seed.randint(584_000, 876_000), 738_000]))

    def moment() -> datetime:
        return datetime.combine(day(), datetime.min.time()) + timedelta(
            microseconds=seed.randrange(86_400_000_000)
        )

    special = [0.0, -0.0, 1e300, 9.3e18, float("inf"), float("-inf"), float("nan")]
    columns = {
        name: column(pa.decimal128(*kind), lambda k=kind: decimal(*k)) for name, kind in DECIMALS.items()
    }
    columns |= {
        name: column(pa.from_numpy_dtype(f"int{bits}"), lambda b=bits: integer(b))
        for name, bits in INTEGERS.items()
    }
    columns["d"] = column(pa.float64(), lambda: seed.choice([*special, seed.uniform(-9, 9), 0.1]))
    columns["f"] = column(pa.float32(), lambda: seed.choice([0.0, -1.5, 0.1, seed.uniform(-1e6, 1e6)]))
    columns["small"] = column(pa.float64(), lambda: seed.choice([-0.0, 2.5, -2.5, seed.uniform(-1e9, 1e9)]))
    columns["b"] = column(pa.bool_(), lambda: seed.random() < 0.5)
    columns |= {name: column(pa.string(), text) for name in ("s", "t")}
    columns |= {name: column(pa.date32(), day) for name in ("day", "day2")}
    columns |= {name: column(pa.timestamp("us"), moment) for name in ("tn", "tn2")}
    columns["ts"] = column(pa.timestamp("us", "UTC"), moment)
    return columns


def shape(number: str) -> tuple[int, int]:
    """Digits before and after the point."""
    if number in DECIMALS:
        precision, scale = DECIMALS[number]
        return precision - scale, scale
    whole, _, fraction = number.strip("-LS").partition(".")
    return (20 if number in INTEGERS else len(whole)), len(fraction)


def arithmetic() -> Iterator[Case]:
    for operator, left, right in product(TRIED, NUMBERS, NUMBERS):
        # Where the quotient behind a remainder has more than 39 digits, Spark fails even in try_mod.
        if operator != "%" or shape(left)[0] + shape(right)[1] <= 38:
            yield Case(f"{left} {operator} {right}", f"{TRIED[operator]}({left}, {right})")


def whole_quotients() -> Iterator[Case]:
    """Beyond a bigint Spark takes the last 64 bits without a word; those are refused, and not asked for."""
    exact = [name for name in NUMBERS if name not in ("d", "f")]
    for left, right in product(exact, exact):
        fits = f"{right} <> 0 AND abs(double({left}) / nullif(double({right}), 0)) < 9e18"
        yield Case(f"{left} div {right}", f"CASE WHEN {fits} THEN {left} div {right} END", guarded=True)


def comparisons() -> Iterator[Case]:
    for operator, left, right in product(
        ("=", "<>", "<", "<=", ">", ">=", "<=>"), (*NUMBERS, "NULL"), (*NUMBERS, "NULL")
    ):
        yield case(f"{left} {operator} {right}")


def choices() -> Iterator[Case]:
    forms = (
        "coalesce({}, {})", "least({}, {})", "greatest({}, {})", "nullif({}, {})", "{} IN ({}, 1)",
        "CASE WHEN b THEN {} ELSE {} END", "CASE {} WHEN {} THEN 1 ELSE 2 END", "if(b, {}, {})",
        "{0} BETWEEN {1} AND {0}", "{0} + NULL * {1}",
    )  # fmt: skip
    for form, left, right in product(forms, (*NUMBERS, "NULL"), (*NUMBERS, "NULL")):
        yield case(form.format(left, right))


def casts() -> Iterator[Case]:
    kinds = (
        "tinyint", "smallint", "int", "bigint", "float", "double", "string", "decimal(10,2)",
        "decimal(38,0)", "decimal(38,38)", "decimal(3,0)", "decimal(20,5)", "decimal(1,1)",
    )  # fmt: skip
    pairs = [
        *product((*SHORT, "p20", "whole", *INTEGERS), kinds),
        *product("b", (*kinds[:4], *kinds[6:])),
        *product(DECIMALS, kinds[3:]),
        *product("df", kinds[:6]),
    ]
    for name, kind in pairs:
        yield Case(f"CAST({name} AS {kind})", f"try_cast({name} AS {kind})")
    for name, kind in (("day", "string"), ("day", "timestamp_ntz"), ("tn", "date")):
        yield case(f"CAST({name} AS {kind})")


def rounding() -> Iterator[Case]:
    exact = (*DECIMALS, *INTEGERS, *LITERALS)
    for name, form in product((*exact, "small"), ("floor({})", "ceil({})", "sqrt({})", "sign({})")):
        yield case(form.format(name))
    for name, places in product(exact, (0, 2, 20, 37)):
        yield case(f"round({name}, {places})")
    for name, form in product((*NEGATED, "d", "f"), ("-{}", "abs({})", "signum({})")):
        yield case(form.format(name))
    yield from map(case, ("sign(d)", "sqrt(d)", "round(p12)", "round(i4)", "ceiling(p25)", "floor(f)"))


def texts() -> Iterator[Case]:
    for position in (-9, -3, -1, 0, 1, 2, 5, 20):
        yield case(f"substr(s, {position})")
        for length in (-1, 0, 1, 3, 100):
            yield case(f"substring(s, {position}, {length})")
    yield from map(case, (
        "trim(s)", "ltrim(s)", "rtrim(s)", "trim(BOTH 'a ' FROM s)", "trim(LEADING 'aA' FROM s)",
        "trim(TRAILING '😀x' FROM s)", "trim(LEADING FROM s)", "replace(s, 'a')", "replace(s, 'a', 'bb')",
        "replace(s, '', 'x')", r"replace(s, '\\', '%')", "lpad(s, 5)", "rpad(s, 5)", "lpad(s, 7, 'xyß')",
        "rpad(s, 7, 'xyß')", "lpad(s, 3, '')", "rpad(s, 0, 'a')", "lpad(s, -2, 'a')",
        "concat_ws(',', s, t)", "concat_ws(s, t, t, s)", "concat_ws(t, s, NULL)", "concat_ws(',', s)",
        "s || t", "upper(s)", "lower(s)", "length(s)", "character_length(s)", "s || NULL", "s IN ('a', '')",
        "s LIKE 'a%'", "s NOT LIKE '%a'", "s LIKE '%#%%' ESCAPE '#'", "s LIKE '%|_%' ESCAPE '|'",
        r"s LIKE '%\\%%'", "s LIKE '_%_'", "s NOT LIKE '%b_' ESCAPE 'b'", "s LIKE ''", "s < t",
        "least(s, t)", "s BETWEEN t AND 'z'", "coalesce(s, t, '')",
    ))  # fmt: skip


def times() -> Iterator[Case]:
    parts = (
        "year",
        "quarter",
        "month",
        "day",
        "dayofmonth",
        "dayofweek",
        "weekday",
        "dayofyear",
        "weekofyear",
    )
    clock = ("hour", "minute", "second")
    for part, name in (*product(parts, ("day", "tn")), *((part, "tn") for part in clock)):
        yield case(f"{part}({name})")
    for part, name in product(("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DOY"), ("day", "tn")):
        yield case(f"extract({part} FROM {name})")
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTES", "SECONDS"):
        for amount, operator in product(("1", "'-5'", "13", "400"), "+-"):
            yield case(f"tn {operator} INTERVAL {amount} {unit}")
            if unit in ("YEAR", "MONTH", "WEEK", "DAY"):
                yield case(f"day {operator} INTERVAL {amount} {unit}")
            if unit in ("MINUTES", "SECONDS"):
                yield case(f"INTERVAL {amount} {unit} + ts")
    for unit in ("year", "YYYY", "yy", "quarter", "MONTH", "mm", "mon", "week"):
        yield case(f"trunc(day, '{unit}')")
    for days in ("i1", "i2", "5", "-3", "3S"):
        yield from map(
            case, (f"day + {days}", f"day - {days}", f"date_add(day, {days})", f"date_sub(day, {days})")
        )
    yield from map(case, (
        "datediff(day, day2)", "day < day2", "least(day, day2)", "tn <=> tn2", "coalesce(tn, tn2)",
        "greatest(tn, tn2)", "day IN (day2)", "tn BETWEEN tn2 AND tn",
    ))  # fmt: skip


FAMILIES: Mapping[str, Callable[[], Iterator[Case]]] = {
    function.__name__: function
    for function in (arithmetic, whole_quotients, comparisons, choices, casts, rounding, texts, times)
}


def evaluated(expression: Expression, arrays: list[pa.Array]) -> list[Any]:
    """The value of every row, None where it is refused."""
    rows = len(arrays[0])
    try:
        values: list[Any] = evaluate(expression, lambda ref: arrays[ref.column], rows).to_pylist()
        return values
    except ViewError:
        if rows == 1:
            return [None]
    half = rows // 2
    halves = ([array.slice(0, half) for array in arrays], [array.slice(half) for array in arrays])
    return [value for part in halves for value in evaluated(expression, part)]


@pytest.mark.parametrize("number", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_values_and_types_are_those_of_spark(spark: "SparkSession", family: str, number: int) -> None:
    seed = random.Random(f"{family} {number}")
    columns = random_columns(seed)
    every = list(FAMILIES[family]())
    cases = seed.sample(every, min(CASES, len(every)))
    declared = tuple(Column(name, spark_type(array.type)) for name, array in columns.items())
    frame = spark.createDataFrame(
        pa.table(columns), ", ".join(f"{column.name} {column.type}" for column in declared)
    )
    answer = frame.selectExpr(*(f"{asked.asked} AS c{n}" for n, asked in enumerate(cases)))
    kinds = [field.dataType.simpleString() for field in answer.schema.fields]
    theirs = answer.toArrow()
    wrong = []
    for n, (asked, kind) in enumerate(zip(cases, kinds, strict=True)):
        found = read_source_expression(asked.sql, declared)
        assert found is not None, f"{asked.sql} is refused"
        if spark_type(found.type) != kind:
            wrong.append(f"{asked.sql} is {kind}, not {spark_type(found.type)}")
        ours = evaluated(found.value, list(columns.values()))
        for row, (mine, right) in enumerate(zip(ours, theirs.column(n).to_pylist(), strict=True)):
            if repr(mine) != repr(right) and not (asked.guarded and right is None):
                inputs = {name: columns[name][row].as_py() for name in columns if name in asked.sql}
                wrong.append(f"{asked.sql} is {right!r}, not {mine!r}, of {inputs}")
    assert wrong == []
