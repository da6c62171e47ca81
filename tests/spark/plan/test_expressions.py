"""Expressions that the workers evaluate have Spark's type and, in every row, Spark's value.

Each expression is taken apart down to its columns, as an expression over several inputs is, evaluated over
random columns full of nulls and extremes, and compared with Spark's answer. What Spark's `try_` functions
answer with null is an error here.
"""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column
from spillway.plan.expression import ColumnRef, evaluate, spark_type
from spillway.plan.rules.source_expression import read_source_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 60
DECIMALS = {
    "p1": (1, 0), "p5": (5, 2), "p12": (12, 2), "p15": (15, 15), "p18": (18, 6), "p20": (20, 0),
    "p25": (25, 12), "whole": (38, 0), "wide": (38, 10), "deep": (38, 30), "tiny": (38, 38),
}  # fmt: skip
INTEGERS = {"i1": 8, "i2": 16, "i4": 32, "i8": 64}
LITERALS = ("0", "7", "-300", "5000000000", "12L", "3S", "0.5", "-1.50", "0.001", "12345678901234567890.5")
OPERATORS = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


def random_columns(seed: random.Random) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}

    def add(name: str, kind: pa.DataType, value: Any) -> None:
        columns[name] = pa.array([None if seed.random() < 0.1 else value() for _ in range(ROWS)], kind)

    def whole(digits: int) -> int:
        size = 10 ** seed.choice([digits, seed.randint(0, digits)])
        return seed.choice([1, -1]) * seed.choice([size - 1, size // 10, seed.randrange(size), 0, 1])

    for name, (precision, scale) in DECIMALS.items():
        add(
            name,
            pa.decimal128(precision, scale),
            lambda p=precision, s=scale: Decimal(whole(p)).scaleb(-s, CONTEXT),
        )
    for name, bits in INTEGERS.items():
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        add(
            name,
            pa.from_numpy_dtype(f"int{bits}"),
            lambda low=low, high=high: seed.choice(
                [low, high, 0, 1, -1, seed.randint(low, high), seed.randint(-99, 99)]
            ),
        )
    special = [0.0, -0.0, 1.5, -2.5, 1e300, -1e19, 9.3e18, 0.1, float("inf"), float("-inf"), float("nan")] if os.environ.get("SPECIAL","1")=="1" else [0.5]
    add("d", pa.float64(), lambda: seed.choice([*special, seed.uniform(-1e6, 1e6), seed.gauss(0, 1)]))
    add("f", pa.float32(), lambda: seed.choice([0.0, -1.5, 0.1, seed.uniform(-1e6, 1e6)]))
    add("b", pa.bool_(), lambda: seed.choice([True, False]))
    for name in ("s", "t"):
        add(name, pa.string(), lambda: "".join(seed.choices("aAbß x%_\\é\n😀", k=seed.randint(0, 8))))
    for name in ("day", "day2"):
        add(
            name,
            pa.date32(),
            lambda: (
                date(1, 1, 1)
                + timedelta(seed.choice([seed.randint(584_000, 876_000), seed.randint(719_000, 739_000)]))
            ),
        )
    for name in ("tn", "tn2"):
        add(
            name,
            pa.timestamp("us"),
            lambda: (
                datetime(1, 1, 1)
                + timedelta(
                    seed.choice([seed.randint(584_000, 876_000), 738_000]),
                    microseconds=seed.randint(0, 86_400_000_000 - 1),
                )
            ),
        )
    add(
        "ts",
        pa.timestamp("us", "UTC"),
        lambda: datetime(1900, 1, 1) + timedelta(microseconds=seed.randint(0, 10**16)),
    )
    return columns


import decimal

CONTEXT = decimal.Context(prec=80)


@dataclass(frozen=True)
class Case:
    sql: str
    spark: str


def compare(
    spark: "SparkSession", cases: Sequence[Case], columns: dict[str, pa.Array]
) -> tuple[int, list[str]]:
    table = pa.table(columns)
    kinds = tuple(Column(name, spark_type(array.type)) for name, array in columns.items())
    frame = spark.createDataFrame(table, ", ".join(f"{c.name} {c.type}" for c in kinds))
    known = []
    refused = []
    for case in cases:
        found = read_source_expression(case.sql, kinds)
        if found is not None:
            known.append((case, found))
        else:
            refused.append(case.sql)
    wrong = []
    arrays = list(columns.values())
    for start in range(0, len(known), 150):
        some = known[start : start + 150]
        try:
            got = frame.selectExpr(*(f"{case.spark} AS `{n}`" for n, (case, _) in enumerate(some)))
            answer = got.toArrow()
        except Exception as e:
            if len(some) == 1:
                raise
            answer = None
        for n, (case, found) in enumerate(some):
            try:
                one = frame.selectExpr(case.spark) if answer is None else None
                kind = (
                    one.schema.fields[0] if one is not None else got.schema.fields[n]
                ).dataType.simpleString()
                expected = (
                    (one.toArrow() if one is not None else answer).column(n if one is None else 0).to_pylist()
                )
            except Exception as e:
                wrong.append(f"{case.spark}: Spark says {str(e)[:200]!r}")
                continue
            if kind != spark_type(found.type):
                wrong.append(f"{case.sql}: Spark's type is {kind}, not {spark_type(found.type)}")
                continue
            for row, (ours, theirs) in enumerate(zip(values(found.value, arrays), expected, strict=True)):
                if theirs is None and " div " in case.sql:
                    continue
                if repr(ours) != repr(theirs) and not (ours == theirs and not isinstance(ours, float)):
                    inputs = {name: columns[name][row].as_py() for name in columns if name in case.sql}
                    wrong.append(f"{case.sql}: Spark has {theirs!r}, not {ours!r}, of {inputs}")
                    break
    return len(known), wrong, refused


def values(expression, arrays):
    """The rows' values, None for a row that fails: the fewest rows are evaluated again."""
    count = len(arrays[0])
    try:
        return evaluate(expression, lambda ref: arrays[ref.column], count).to_pylist()
    except ViewError:
        if count == 1:
            return [None]
    half = count // 2
    return values(expression, [a.slice(0, half) for a in arrays]) + values(
        expression, [a.slice(half) for a in arrays]
    )


def cases_arithmetic():
    atoms = [*DECIMALS, *INTEGERS, "d", "f", *LITERALS]
    for (operator, function), left, right in product(OPERATORS.items(), atoms, atoms):
        yield Case(f"{left} {operator} {right}", f"{function}({left}, {right})")


def cases_compare():
    atoms = [*DECIMALS, *INTEGERS, "d", "f", *LITERALS, "NULL"]
    for o, left, right in product(("=", "<", ">=", "<>", "<=>"), atoms, atoms):
        yield Case(f"{left} {o} {right}", f"{left} {o} {right}")


def cases_choose():
    atoms = [*DECIMALS, *INTEGERS, "d", "f", *LITERALS, "NULL"]
    for l, r in product(atoms, atoms):
        for form in (
            "coalesce({},{})",
            "least({},{})",
            "greatest({},{})",
            "CASE WHEN b THEN {} ELSE {} END",
            "{} in ({}, 1)",
            "nullif({},{})",
            "if(b,{},{})",
            "{0} between {1} and {0}",
            "{0} + NULL * {1}",
            "CASE {} WHEN {} THEN 1 ELSE 2 END",
        ):
            e = form.format(l, r)
            yield Case(e, e)


def cases_cast():
    for a in [*DECIMALS, *INTEGERS, "d", "f", "b", "day", "tn", "ts", *LITERALS]:
        for t in (
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "float",
            "double",
            "string",
            "boolean",
            "date",
            "timestamp_ntz",
            "timestamp",
            "decimal(10,2)",
            "decimal(38,0)",
            "decimal(38,38)",
            "decimal(3,0)",
            "decimal(20,5)",
            "decimal(1,1)",
        ):
            yield Case(f"cast({a} as {t})", f"try_cast({a} as {t})")


def cases_unary():
    for a in [*DECIMALS, *INTEGERS, "d", "f", *LITERALS, "NULL"]:
        for f in (("floor({})",) if a in INTEGERS else ()) or (
            "floor({})",
            "ceil({})",
            "ceiling({})",
            "round({})",
            "round({},0)",
            "round({},2)",
            "round({},20)",
            "round({}, 37)",
            "round({},-1)",
            "sqrt({})",
            "sign({})",
            "signum({})",
            "-{}",
            "abs({})",
        ):
            yield Case(f.format(a), f.format(a))


def cases_div():
    atoms = [*DECIMALS, *INTEGERS, "d", "f", *LITERALS]
    for l, r in product(atoms, atoms):
        yield Case(
            f"{l} div {r}",
            f"CASE WHEN {r} <> 0 AND abs(double({l})/nullif(double({r}),0)) < 9e18 THEN {l} div {r} END",
        )
        yield Case(f"mod({l}, {r})", f"try_mod({l}, {r})")


def cases_text():
    for p in (-9, -3, -1, 0, 1, 2, 5, 20):
        yield from (Case(x, x) for x in [f"substring(s,{p})", f"substr(s,{p})"])
        for n in (-1, 0, 1, 3, 100):
            yield Case(f"substring(s,{p},{n})", f"substring(s,{p},{n})")
    for x in [
        "trim(s)",
        "ltrim(s)",
        "rtrim(s)",
        "trim(both 'a ' from s)",
        "trim(leading 'aA' from s)",
        "trim(trailing '😀x' from s)",
        "trim(both from s)",
        "trim(leading from s)",
        "replace(s,'a')",
        "replace(s,'a','bb')",
        "replace(s,'','x')",
        "replace(s,'ab','')",
        "replace(s,'\\\\','%')",
        "lpad(s,5)",
        "rpad(s,5)",
        "lpad(s,7,'xyß')",
        "rpad(s,7,'xyß')",
        "lpad(s,3,'')",
        "rpad(s,0,'a')",
        "lpad(s,-2,'a')",
        "concat_ws(',',s,t)",
        "concat_ws(s,t,t,s)",
        "concat_ws(',',s)",
        "concat_ws(t,s,NULL)",
        "s || t",
        "upper(s)",
        "lower(s)",
        "length(s)",
        "s like 'a%'",
        "s not like '%a'",
        "s like '%#%%' escape '#'",
        "s like '%|_%' escape '|'",
        "s not like 'a%%b' escape 'b'",
        "s like '%\\\\%%'",
        "s like '_%_'",
        "s like ''",
        "s ilike 'A%'",
        "s rlike 'a'",
        "s in ('a','')",
        "s = t",
        "s < t",
        "least(s,t)",
        "s between t and 'z'",
        "char_length(s)",
        "character_length(s)",
        "ltrim('a', s)",
        "trim('a', s)",
        "s || NULL",
        "coalesce(s,t,'')",
    ]:
        yield Case(x, x)


def cases_time():
    for f in (
        "year",
        "quarter",
        "month",
        "day",
        "dayofmonth",
        "dayofweek",
        "weekday",
        "dayofyear",
        "weekofyear",
        "hour",
        "minute",
        "second",
    ):
        for c in ("day", "tn", "ts"):
            yield Case(f"{f}({c})", f"{f}({c})")
    for f in (
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "dayofweek",
        "doy",
        "hour",
        "minute",
        "second",
        "dow",
        "isoyear",
        "yearofweek",
        "days",
        "months",
    ):
        for c in ("day", "tn", "ts"):
            yield Case(f"extract({f} from {c})", f"extract({f} from {c})")
    for u in ("year", "month", "week", "day", "hour", "minute", "second", "years", "months", "days"):
        for n in ("1", "'3'", "'-5'", "13", "100", "'400'", "-7"):
            for c in ("day", "tn", "ts"):
                for o in "+-":
                    yield Case(f"{c} {o} interval {n} {u}", f"{c} {o} interval {n} {u}")
                yield Case(f"interval {n} {u} + {c}", f"interval {n} {u} + {c}")
    for c in ("day", "tn", "ts"):
        for u in ("year", "YYYY", "yy", "quarter", "MONTH", "mm", "mon", "week", "day"):
            yield Case(f"trunc({c},'{u}')", f"trunc({c},'{u}')")
        for e in ("i1", "i2", "5", "-3", "3S"):
            for x in (
                f"{c} + {e}",
                f"{c} - {e}",
                f"date_add({c},{e})",
                f"date_sub({c},{e})",
                f"dateadd({c},{e})",
            ):
                yield Case(x, x)
        for d in ("day2", "tn2", "ts", "day"):
            for x in (
                f"datediff({c},{d})",
                f"date_diff({c},{d})",
                f"{c} - {d}",
                f"{c} < {d}",
                f"coalesce({c},{d})",
                f"least({c},{d})",
                f"{c} = {d}",
                f"{c} in ({d})",
            ):
                yield Case(x, x)
    for x in ("date_add(day, i4)", "1 + day", "i1 + day", "tn + interval 25 hour", "ts + interval 23 hour"):
        yield Case(x, x)


@pytest.mark.parametrize("group", ["arithmetic", "compare", "choose", "cast", "unary", "div", "text", "time"])
def test_all(spark, group):
    import os, time

    seed = random.Random(int(os.environ.get("SEED", "1")))
    cols = random_columns(seed)
    cases = list(globals()["cases_" + group]())
    frac = float(os.environ.get("FRAC", "1"))
    cases = [c for c in cases if seed.random() < frac]
    t = time.time()
    n, wrong, refused = compare(spark, cases, cols)
    with open(f"/tmp/h/out_{group}.txt", "w") as f:
        f.write("\n".join(wrong) + "\n\nREFUSED\n" + "\n".join(refused))
    print(group, len(cases), "cases", n, "known", len(wrong), "wrong", round(time.time() - t, 1), "s")
    for w in wrong[:12]:
        print("   ", w)
