"""A maintained view that is loaded by `spillway compute` has the rows of one that is joined directly."""

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spillway.maintain.choice import choose_by_name
from spillway.maintain.definition import ViewDefinition, define_view
from spillway.maintain.execute import Executor
from spillway.maintain.recompute import compare, recompute
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources.delta import DeltaServer
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.spark.maintain.compute_load import ComputeLoad

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "k": "bigint", "i": "int", "s": "string", "d": "decimal(9,2)", "t": "timestamp", "n": "timestamp_ntz",
    "f": "double", "b": "boolean", "day": "date",
}  # fmt: skip
CHAIN = "FROM one JOIN two ON one.k = two.i JOIN three ON two.s = three.s AND two.k = three.k"


def rows(chance: random.Random, count: int, *, weights: tuple[int, ...]) -> pa.Table:
    pick = lambda *values: [chance.choice([None, *values]) for _ in range(count)]  # noqa: E731
    return pa.table(
        {
            "c0": pa.array(pick(0, 1, 2, 3), pa.int64()),
            "c1": pa.array(pick(0, 1, 2, 3), pa.int32()),
            "c2": pa.array(pick("", "a", "ü'\\"), pa.string()),
            "c3": pa.array(pick(Decimal("0.10"), Decimal("-7.25")), pa.decimal128(9, 2)),
            "c4": pa.array(pick(0, -1, 10**15), pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "c5": pa.array(pick(0, -1, 10**15), pa.int64()).cast(pa.timestamp("us")),
            "c6": pa.array(pick(0.0, -0.0, float("nan"), 1.5), pa.float64()),
            "c7": pa.array(pick(True, False), pa.bool_()),
            "c8": pa.array(pick(0, 20_000), pa.int32()).cast(pa.date32()),
            "weight": pa.array([chance.choice(weights) for _ in range(count)], pa.int64()),
        }
    )


def defined(text: str) -> ViewDefinition:
    columns = tuple(Column(name, kind) for name, kind in COLUMNS.items())
    return define_view(View.sql(text), dict.fromkeys(("one", "two", "three"), columns))


def inputs(definition: ViewDefinition, chance: random.Random, weights: tuple[int, ...]) -> list[pa.Table]:
    """Rows of every input, with the columns that the view reads of it."""
    made = []
    for one in definition.inputs:
        table = rows(chance, 60, weights=weights)
        places = [list(COLUMNS).index(column.name) for column in one.columns]
        chosen = table.select([*(f"c{place}" for place in places), "weight"])
        made.append(chosen.rename_columns([*(f"c{place}" for place in range(len(places))), "weight"]))
    return made


@pytest.mark.parametrize(
    ("items", "weights"),
    [
        ("one.k AS x, two.i AS y, three.k AS z", (1,)),
        (
            "one.k AS x, one.s AS s, two.d AS d, two.t AS t, three.n AS n, three.b AS b, three.day AS day",
            (1,),
        ),
        ("one.f AS f, three.f AS g, two.s AS s", (1,)),
        ("one.t AS t, two.k AS k, three.d AS d", (1, 2, -1)),
        ("one.f AS f, two.k AS k", (1, 3)),
    ],
)
def test_the_same_rows_as_the_direct_load(
    spark: "SparkSession", items: str, weights: tuple[int, ...]
) -> None:
    chance = random.Random(items)
    definition = defined(f"SELECT {items} {CHAIN} WHERE one.i < 3")
    tables, executor, load = inputs(definition, chance, weights), Executor(definition), ComputeLoad(spark, 0)
    found = load(definition, [executor.kept(node, table) for node, table in enumerate(tables)])
    direct = recompute(definition, executor, tables)
    executor.close()
    assert found is not None
    direct = direct.cast(found.schema)  # a time zone is called UTC or Etc/UTC
    assert found.num_rows == direct.num_rows > 0
    assert compare(found, direct) == 0
    assert load.summary is not None
    assert load.summary["rows"], "the computation gave the rows"


@pytest.mark.parametrize(
    "text",
    [f"SELECT one.k + two.k AS x {CHAIN}", f"SELECT one.k AS x {CHAIN} WHERE one.d < three.d"],
    ids=["expression", "condition over two tables"],
)
def test_what_is_left_to_the_direct_load(spark: "SparkSession", text: str) -> None:
    definition, chance = defined(text), random.Random(1)
    executor = Executor(definition)
    tables = [executor.kept(node, one) for node, one in enumerate(inputs(definition, chance, (1,)))]
    executor.close()
    assert ComputeLoad(spark, 0)(definition, tables) is None
    plain = defined(f"SELECT one.k AS x {CHAIN}")
    wide = [executor_kept(plain, node, one) for node, one in enumerate(inputs(plain, chance, (1,)))]
    assert ComputeLoad(spark, 1000)(plain, wide) is None, "small"
    assert ComputeLoad(spark, 0)(plain, [wide[0].slice(0, 0), *wide[1:]]) is None, "an empty table"


def executor_kept(definition: ViewDefinition, node: int, table: pa.Table) -> pa.Table:
    executor = Executor(definition)
    kept = executor.kept(node, table)
    executor.close()
    return kept


def test_a_view_that_was_loaded_so_is_maintained(spark: "SparkSession", tmp_path: Path) -> None:
    chance, root = random.Random(9), tmp_path / "lake"

    def some(count: int) -> pa.Table:
        values: Any = [[chance.randrange(20) for _ in range(count)] for _ in range(2)]
        return pa.table({"x": pa.array(values[0], pa.int64()), "y": pa.array(values[1], pa.int64())})

    for name in "abc":
        write_deltalake(root / name, some(300))
    server, load = DeltaServer(root), ComputeLoad(spark, 500)
    text = "SELECT a.x AS x, b.y AS y, c.y AS z FROM a JOIN b ON a.y = b.x JOIN c ON b.y = c.x"
    definition = define_view(View.sql(text), {name: server.columns(name) for name in "abc"})
    store = ViewStore.open(tmp_path / "view.duckdb", definition.fingerprint, ["x", "y", "z"])
    manager = ViewManager(
        definition,
        [TableLocation("lake", name) for name in "abc"],
        {"lake": server},
        store,
        choose_by_name("conditional"),
        load=load,
    )
    manager.open()
    assert load.summary is not None
    assert manager.verify() == 0
    for name in "abc":
        write_deltalake(root / name, some(7), mode="append")
    assert manager.round() is not None
    assert manager.verify() == 0
    manager.close()
    store.close()
    server.close()
