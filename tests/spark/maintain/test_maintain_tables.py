"""Delta and Parquet tables maintained by Spark jobs, and the algebra of large deltas on Spark."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from kit.tables import change_delta, random_rows
from spillway.errors import IncarnationError
from spillway.maintain.algebra import AlgebraBySize, ArrowAlgebra
from spillway.maintain.choice import FixedChoice, choose_by_name
from spillway.maintain.definition import define_view
from spillway.maintain.execute import Answer
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources.table_files import TableFiles
from spillway.maintain.strategies.registry import plan_round
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore
from spillway.model.view import View
from spillway.spark.maintain.spark_algebra import SparkAlgebra
from spillway.spark.maintain.spark_server import SparkServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("a", "b", "c")
VIEW = "SELECT a.x AS x, b.y AS y, c.y AS z FROM a JOIN b ON a.y = b.x JOIN c ON b.y = c.x WHERE a.x < 9"


def change(root: Path, chance: random.Random) -> None:
    """Table `c` is a directory of Parquet files, which only grows; the others are Delta tables."""
    name = chance.choice(TABLES)
    if name == "c":
        pq.write_table(random_rows(chance, 3), root / name / f"part-{chance.randrange(10**9)}.parquet")
        return
    change_delta(root / name, chance)


class Busy(SparkServer):
    """Others write before every answer."""

    chance = random.Random(7)
    root: Path

    def ask(self, *words: Any) -> Answer:
        change(self.root, self.chance)
        return super().ask(*words)


def expected(root: Path, vector: str) -> Counter[tuple[object, ...]]:
    files = TableFiles(root)
    with duckdb.connect() as base:
        for name, version in json.loads(vector)["at"].items():
            tables = [pq.read_table(file) for file in files.files(name, version)]
            base.register(name, pa.concat_tables(tables) if tables else random_rows(random.Random(0), 0))
        return Counter(base.execute(VIEW).fetchall())


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    chance, root = random.Random(3), tmp_path / "lake"
    for name in TABLES[:2]:
        write_deltalake(root / name, random_rows(chance, 8))
    (root / "c").mkdir()
    pq.write_table(random_rows(chance, 8), root / "c" / "part-0.parquet")
    return root


def test_rounds_by_spark_jobs_while_others_write(spark: "SparkSession", lake: Path, tmp_path: Path) -> None:
    chance, server = random.Random(5), Busy(spark, lake)
    server.root = lake
    definition = define_view(View.sql(VIEW), {name: server.columns(name) for name in TABLES})
    store = ViewStore.open(tmp_path / "view.duckdb", definition.fingerprint, ["x", "y", "z"])
    chosen = ["batch"]
    manager = ViewManager(
        definition,
        [TableLocation("lake", name) for name in TABLES],
        {"lake": server},
        store,
        FixedChoice(lambda graph, sizes: plan_round(chosen[0], graph, sizes)),
        algebra=AlgebraBySize(SparkAlgebra(spark), 4),
    )
    manager.open()
    for strategy in ("batch", "conditional", "adjacent", "greedy"):
        chosen[0] = strategy
        for _ in range(3):
            change(lake, chance)
        manager.round()
        state = store.state()
        assert state is not None
        stored = Counter({tuple(row.values())[:-1]: row["weight"] for row in store.rows().to_pylist()})
        assert stored == expected(lake, state.vectors["lake"]), strategy
        assert stored
    assert manager.verify() == 0
    manager.close()
    store.close()


@pytest.mark.parametrize("how", ["lost", "overwritten"])
def test_a_parquet_table_that_loses_a_file_is_refused(lake: Path, how: str) -> None:
    files = TableFiles(lake)
    version = files.version("c")
    known = files.identity("c", version)
    assert files.identity("c", version) == known
    (lake / "c" / "part-0.parquet").unlink()
    name = "part-1.parquet" if how == "lost" else "part-0.parquet"
    pq.write_table(random_rows(random.Random(1), 2), lake / "c" / name)
    if how == "lost":
        with pytest.raises(IncarnationError, match="--reload"):
            files.identity("c", version)
    else:
        assert files.identity("c", version) != known


def test_a_recreated_table_ends_a_round_of_spark_jobs(
    spark: "SparkSession", lake: Path, tmp_path: Path
) -> None:
    server = SparkServer(spark, lake)
    definition = define_view(View.sql(VIEW), {name: server.columns(name) for name in TABLES})
    store = ViewStore.open(tmp_path / "view.duckdb", definition.fingerprint, ["x", "y", "z"])
    homes = [TableLocation("lake", name) for name in TABLES]
    manager = ViewManager(definition, homes, {"lake": server}, store, choose_by_name("batch"))
    manager.open()
    shutil.rmtree(lake / "a")
    write_deltalake(lake / "a", random_rows(random.Random(4), 5))
    with pytest.raises(IncarnationError, match="--reload"):
        manager.round()
    manager.reload()
    assert manager.verify() == 0
    manager.close()
    store.close()


def random_delta(chance: random.Random, prefix: str, count: int, *, floating: bool) -> pa.Table:
    pick = lambda *values: [chance.choice([None, *values]) for _ in range(count)]  # noqa: E731
    columns = {
        f"{prefix}0": pa.array(pick(0, 1, 2), pa.int64() if prefix == "l" else pa.int32()),
        f"{prefix}1": pa.array(pick("", "a", "b"), pa.string()),
        f"{prefix}2": pa.array(pick(0, 86_400_000_000, -1), pa.int64()).cast(pa.timestamp("us")),
        f"{prefix}3": pa.array(pick(0, 86_400_000_000, -1), pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        "weight": pa.array([chance.choice([-2, -1, 1, 3]) for _ in range(count)], pa.int64()),
    }
    if floating:
        columns[f"{prefix}4"] = pa.array(pick(0.0, -0.0, float("nan"), 1.5), pa.float64())
    return pa.table(columns)


def bag(table: pa.Table) -> Counter[str]:
    """Rows with their weight, compared by their text: NaN is NaN and -0.0 is not 0.0."""
    names = sorted(name for name in table.column_names if name != "weight")
    total: Counter[str] = Counter()
    for row in table.to_pylist():
        total[str([row[name] for name in names])] += row["weight"]
    return Counter({row: weight for row, weight in total.items() if weight})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "pairs", [[("l0", "r0")], [("l0", "r0"), ("l1", "r1")], [("l3", "r3")], [("l4", "r4")], []]
)
def test_the_algebra_on_spark_gives_what_arrow_gives(
    spark: "SparkSession", seed: int, pairs: list[tuple[str, str]]
) -> None:
    chance = random.Random(seed)
    # Tables consist of chunks, some of them without rows: PySpark alone drops what comes after those.
    left, right = (
        pa.concat_tables(random_delta(chance, prefix, rows, floating=True) for rows in (4, 0, 8))
        for prefix in "lr"
    )
    ours, theirs = SparkAlgebra(spark), ArrowAlgebra()
    joined = ours.join(left, right, pairs)
    assert bag(joined) == bag(theirs.join(left, right, pairs))
    assert bag(joined)
    if seed == 0:
        for floating in (False, True):
            parts = [random_delta(chance, "l", rows, floating=floating) for rows in (30, 0, 30)]
            delta = pa.concat_tables(parts)
            assert bag(ours.consolidate(delta)) == bag(theirs.consolidate(delta))
            assert ours.consolidate(delta).num_rows == theirs.consolidate(delta).num_rows
