"""The plan of a computation is the same with and without Spark."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from spillway.catalog.stored import plan_stored
from spillway.catalog.stored.resources import available_processors, heap_bytes, session_resources
from spillway.compute import ComputeConfig
from spillway.errors import SpillwayError
from spillway.job import SourceSpec
from spillway.model import View
from spillway.plan.typing import NeedsSparkError
from spillway.workload.multi_join import generate_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.master": "local[2,4]", "spark.driver.memory": "1g", "spark.buffer.pageSize": "32m"}
"""Those of the session of these tests."""


@pytest.fixture(autouse=True)
def same_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2 << 30))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def report(plan: Any) -> dict[str, Any] | tuple[str, str]:
    try:
        return {
            key: value for key, value in plan().items() if not key.endswith("_seconds") or "estimated" in key
        }
    except SpillwayError as error:
        return type(error).__name__, str(error)


def same(spark: "SparkSession", sql: str, specs: dict[str, SourceSpec], **config: Any) -> Any:
    from spillway.spark.compute import plan_computation

    wanted = ComputeConfig(**config)
    ours = report(lambda: plan_stored(View.sql(sql), specs, wanted, None, SETTINGS))
    theirs = report(lambda: plan_computation(spark, sql, specs, wanted, keep_statistics=False).report())
    assert ours == theirs
    return ours


def test_resources_are_those_of_the_session(spark: "SparkSession") -> None:
    from spillway.spark.compute.computation import _resources

    assert session_resources(SETTINGS) == _resources(spark)
    runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    assert available_processors() == runtime.availableProcessors()
    assert heap_bytes(1 << 30) == runtime.maxMemory()


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize("relations", [2, 4, 7])
def test_random_joins(spark: "SparkSession", tmp_path: Path, relations: int, kind: str) -> None:
    query = generate_query(relations, relations, rows=(300, 900), result_rows=(100, 1_000))
    query.write(tmp_path / "parquet")
    for relation in query.relations if kind == "delta" else ():
        write_deltalake(
            str(tmp_path / "delta" / relation.name), pq.read_table(tmp_path / "parquet" / relation.name)
        )
    specs = {relation.name: SourceSpec(relation.name, kind, str(tmp_path / kind / relation.name))
             for relation in query.relations}  # fmt: skip
    chosen = same(spark, query.sql, specs)
    assert chosen["way"] in ("columns", "spark", "statements")
    same(spark, query.sql, specs, tree="segmented-bushy")
    same(spark, query.sql, specs, memory_bytes=1 << 10)
    same(spark, f"{query.sql} AND {query.relations[0].name}.nope > 1", specs)


def test_filters_expressions_and_partitions(spark: "SparkSession", tmp_path: Path) -> None:
    seed = random.Random(3)
    for name in "abc":
        table = pa.table({
            "k": pa.array([seed.randrange(50) for _ in range(400)], pa.int64()),
            "p": pa.array([seed.choice(["x", "y z"]) for _ in range(400)]),
            "v": pa.array([seed.random() for _ in range(400)]),
        })  # fmt: skip
        write_deltalake(str(tmp_path / name), table, partition_by=["p"] if name == "a" else None)
    specs = {name: SourceSpec(name, "delta", str(tmp_path / name)) for name in "abc"}
    sql = "SELECT a.k, b.v + c.v AS v FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.p = 'x' AND b.v > 0.5"
    same(spark, sql, specs)
    same(spark, sql.replace("a.k = b.k", "a.k + 1 = b.k"), specs, way="tree")
    same(spark, "SELECT a.k FROM a, nowhere WHERE a.k = nowhere.k", specs)


def test_relations_that_are_left_to_spark(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1]}), tmp_path / "a.parquet")
    (tmp_path / "empty").mkdir()
    view = View.sql("SELECT a.k FROM a, b WHERE a.k = b.k")
    good = SourceSpec("a", "parquet", str(tmp_path / "a.parquet"))
    for other in (
        SourceSpec("b", "csv", str(tmp_path)),
        SourceSpec("b", "parquet", str(tmp_path / "empty")),
        SourceSpec("b", "parquet", str(tmp_path), "k long"),
        SourceSpec("b", "delta", str(tmp_path)),
        SourceSpec("b", "parquet", f"{tmp_path}/*.parquet"),
    ):
        with pytest.raises(NeedsSparkError):
            plan_stored(view, {"a": good, "b": other}, ComputeConfig(), None, {})
    with pytest.raises(NeedsSparkError):
        plan_stored(view, {"a": good, "b": good}, ComputeConfig(sample=0.5), None, {})
