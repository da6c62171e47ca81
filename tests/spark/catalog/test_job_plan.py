"""`explain` and `run` refuse the same jobs, and show the same plans with the same types."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from spillway.catalog import plan_streams
from spillway.errors import SpillwayError
from spillway.job import SourceSpec
from spillway.model import View
from spillway.plan.rules import Plan
from spillway.plan.typing import NeedsSparkError, PlanTypes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spillway.spark.session import Session

TYPES = (
    "boolean", "tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)", "string",
    "binary",
    "date", "timestamp", "timestamp_ntz", "array<int>", "struct<f:int,g:string>", "map<string,int>",
)  # fmt: skip
NAMES = "abc"
NESTED = "n struct<f:int,g:struct<h:decimal(5,1)>>"


def choice(*words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, str]:
    """Columns of three streams; types of equal columns mostly fit."""
    kinds = {name: draw(st.sampled_from(TYPES)) for name in "kjx"}
    made = {}
    for stream in NAMES:
        other = {name: draw(st.sampled_from(TYPES)) if draw(st.integers(0, 5)) == 0 else kind
                 for name, kind in kinds.items()}  # fmt: skip
        columns = [f"{name} {kind}" for name, kind in other.items()]
        made[stream] = ", ".join([*columns, "s string", "i int", "d decimal(12,3)", "ts timestamp", NESTED])
    return made


def values(left: str, right: str) -> st.SearchStrategy[str]:
    """Values of one stream, or of two."""
    return choice(
        *(f"{left}.{name}" for name in ("k", "j", "x", "s", "i", "d", "ts", "n", "n.f", "n.g.h", "nope")),
        f"{left}.i + 1", f"{left}.d * {left}.i", f"{left}.x + {left}.i", f"upper({left}.s)",
        f"soundex({left}.s)",
        "NULL",
        f"coalesce({left}.x, {left}.k)", f"CAST({left}.s AS int)", f"CAST({left}.x AS string)",
        f"year({left}.ts)", "7",
        f"{left}.i + {right}.i", f"{left}.x + {right}.x", f"{left}.s || {right}.s", f"{left}.d - {right}.d",
        f"coalesce({left}.x, {right}.x)", f"least({left}.d, {right}.i)",
        f"CASE WHEN {left}.i > 1 THEN {right}.x END",
        f"concat({left}.s, upper({right}.s))", f"{left}.x", f"{left}.n.f + {right}.i", f"{left}.d / 0",
    )  # fmt: skip


def conditions(left: str, right: str) -> st.SearchStrategy[str]:
    return choice(
        f"{left}.i > 1", f"{left}.x > 1", f"{left}.s LIKE 'a%'", f"{left}.x", f"{left}.x IS NULL",
        f"{left}.d IN (1, 2.5)",
        f"{left}.i < {right}.i", f"{left}.x <= {right}.x", f"{left}.x", f"{left}.i + {right}.i",
        f"{left}.s = {right}.s",
        f"({left}.i = 1 OR {right}.s IS NULL)", f"{left}.ts < {right}.ts + INTERVAL 5 MINUTES",
        f"{left}.d < {right}.x",
        f"{left}.s > 5", f"{left}.ts > '2024-01-01'",
    )  # fmt: skip


@st.composite
def joins(draw: st.DrawFn) -> str:
    inputs = NAMES[: draw(st.integers(2, 3))]
    pairs = [(inputs[draw(st.integers(0, number - 1))], inputs[number]) for number in range(1, len(inputs))]
    parts = [
        draw(
            choice(f"{left}.k = {right}.k", f"{left}.k = {right}.k", f"{left}.j = {right}.k",
            f"{left}.i = {right}.x",
                   f"{left}.i + 1 = {right}.i", f"upper({left}.s) = {right}.s", f"{left}.n.f = {right}.i",
                   f"{left}.d = {right}.i AND {left}.k = {right}.k", f"trim({left}.s) = soundex({right}.s)")
        )
        for left, right in pairs
    ]  # fmt: skip
    first, last = inputs[0], inputs[-1]
    parts += draw(st.lists(conditions(first, last), max_size=2))
    items = draw(st.lists(values(last, first), min_size=1, max_size=3))
    named = ", ".join(f"{item} AS v{number}" for number, item in enumerate(items))
    window = draw(choice("", "", "", " [RANGE 10 SECONDS]"))
    return f"SELECT {named} FROM {', '.join(name + window for name in inputs)} WHERE {' AND '.join(parts)}"


@st.composite
def frames(draw: st.DrawFn) -> str:
    item = draw(choice("x", "d", "s", "k", "upper(s)", "n.f", "i + 1", "soundex(s)"))
    function = draw(choice("count", "sum", "avg", "min", "max"))
    over = f"PARTITION BY {draw(choice('k', 'j', 's', 'n'))} ORDER BY ts{draw(choice('', ', x', ', i'))}"
    filtered = draw(choice("", " WHERE i > 0", " WHERE x"))
    frame = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
    value = draw(choice("x", "n", "i + 1"))
    return f"SELECT ts, {value} AS v, {function}({item}) OVER ({over} {frame}) AS w FROM a{filtered}"


def outcome(plan: Any) -> tuple[str, Any]:
    try:
        return "planned", plan()
    except SpillwayError as error:
        return type(error).__name__, str(error)


def plain(types: PlanTypes) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in types.schema if not pa.types.is_nested(field.type)]


@pytest.fixture(scope="module")
def session(spark: "SparkSession") -> "Session":
    from spillway.spark.session import Session

    return Session(spark)


@given(schemas(), st.one_of(joins(), joins(), joins(), frames()), st.booleans())
@settings(max_examples=3 * settings().max_examples)
def test_the_same_plans_and_refusals(
    session: "Session",
    tmp_path_factory: pytest.TempPathFactory,
    columns: dict[str, str],
    sql: str,
    is_timed: bool,
) -> None:
    root = tmp_path_factory.getbasetemp()
    timed = {"event_time": "ts", "lateness": "5 seconds"} if is_timed or "OVER" in sql else {}
    sources = {name: SourceSpec(name, "json", str(root), ddl, **timed) for name, ddl in columns.items()}

    def with_spark() -> tuple[Plan, PlanTypes]:
        plan, wire = session.plan(View.sql(sql), sources)
        return plan, wire.types

    try:
        ours = outcome(lambda: plan_streams(View.sql(sql), sources, {}))
    except NeedsSparkError:
        event("left to Spark")
        return
    theirs = outcome(with_spark)
    event(f"known: {ours[0]}")
    assert ours[0] == theirs[0], (ours, theirs)
    if ours[0] != "planned":
        assert ours == theirs
        return
    (plan, types), (spark_plan, spark_types) = ours[1], theirs[1]
    assert plan == spark_plan
    assert (types.keys, types.exact, types.columns()) == (
        spark_types.keys,
        spark_types.exact,
        spark_types.columns(),
    )
    assert plain(types) == plain(spark_types)
    assert [[column.leaves for column in input_.columns] for input_ in types.inputs] == [
        [column.leaves for column in input_.columns] for input_ in spark_types.inputs
    ]


@pytest.mark.parametrize(
    ("settings_", "reason"),
    [
        ({"spark.sql.ansi.enabled": "false"}, "[spark] sets spark.sql.ansi.enabled"),
        ({"spark.master": "spark://host:7077"}, "[spark] sets spark.master"),
        ({"spark.driver.memory": "lots"}, "[spark] sets spark.driver.memory"),
    ],
)
def test_settings_that_may_change_types_are_left_to_spark(
    tmp_path: Path, settings_: dict[str, str], reason: str
) -> None:
    sources = {name: SourceSpec(name, "json", str(tmp_path), "k long") for name in "ab"}
    with pytest.raises(NeedsSparkError) as error:
        plan_streams(View.sql("SELECT a.k FROM a, b WHERE a.k = b.k"), sources, settings_)
    assert str(error.value) == reason
    plan_streams(View.sql("SELECT a.k FROM a, b WHERE a.k = b.k"), sources, {"spark.driver.memory": "2g"})
