"""Which way a view is computed, the memory that it keeps to, and what is learned from a run."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spillway.compute import ComputeConfig
from spillway.compute.unit_costs import UnitCosts
from spillway.errors import BudgetError, JobError
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.lab.bench.tpch import query_metrics
from spillway.lab.bench.tpch_run import TpchBench
from spillway.spark.compute.computation import plan_computation
from spillway.workload.multi_join import generate_query
from spillway.workload.tpch import tables_of

Counted = Callable[[pa.Table], Counter[Any]]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def stored(
    directory: Path, relations: int, seed: int = 1, rows: int = 3_000
) -> tuple[str, dict[str, SourceSpec]]:
    query = generate_query(relations, seed, rows=(rows // 3, rows), result_rows=(500, 5_000))
    query.write(directory)
    names = [one.name for one in query.relations]
    return query.sql, {name: SourceSpec(name, "parquet", str(directory / name)) for name in names}


def truth(sql: str, specs: dict[str, SourceSpec]) -> pa.Table:
    with duckdb.connect() as database:
        for name, spec in specs.items():
            database.read_parquet(f"{spec.path}/*.parquet").create_view(name)
        return database.sql(sql).to_arrow_table()


def test_many_small_relations_are_joined_by_columns(spark: SparkSession, tmp_path: Path) -> None:
    sql, specs = stored(tmp_path / "data", 8)
    computation = plan_computation(spark, sql, specs)
    assert computation.plan.way == "columns"
    assert "times as fast as Spark's own plan" in computation.plan.reason
    assert "by columns: estimated" in computation.explain()
    assert computation.report()["way"] == "columns"


def test_few_relations_are_left_to_spark(spark: SparkSession, tmp_path: Path, counted: Counted) -> None:
    """Nothing can be gained there, and of a DataFrame nothing is known."""
    sql, specs = stored(tmp_path / "data", 2)
    frames = {name: spark.read.parquet(str(spec.path)) for name, spec in specs.items()}
    for sources in (specs, frames):
        computation = plan_computation(spark, sql, sources)
        assert computation.plan.way == "spark"
        assert computation.explain().startswith("Spark's own plan: no clear gain is expected")
        out = tmp_path / f"out-{id(sources)}"
        summary = computation.run(SinkSpec("parquet", str(out)))
        assert counted(pq.read_table(out)) == counted(truth(sql, specs))
        assert (summary["way"], summary["table_bytes_peak"]) == ("spark", None)
    assert "not local Parquet files" in summary["reason"]
    assert list(out.parent.glob(".*")) == []


def test_a_limit_that_cannot_be_kept_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    sql, specs = stored(tmp_path / "data", 4)
    config = ComputeConfig(memory_bytes=700_000)
    with pytest.raises(BudgetError, match=r"memory = 0.7 MB is too small: .* give at least that"):
        plan_computation(spark, sql, specs, config)
    with pytest.raises(JobError, match="takes no tree and no memory"):
        ComputeConfig(way="spark", memory_bytes=1 << 30)


@pytest.mark.parametrize("where", ["", " WHERE r0.id >= 0"], ids=["columns", "statements"])
def test_estimates_of_memory_are_corrected_by_what_was_measured(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    sql, specs = stored(tmp_path / "data", 4, rows=20_000)
    config = ComputeConfig(memory_bytes=400 << 20)
    first = plan_computation(spark, sql + where, specs, config)
    summary = first.run(SinkSpec("count"))
    assert summary["way"] == ("statements" if where else "columns")
    assert summary["fits_memory"]
    assert 0 < summary["table_bytes_peak"] <= 400 << 20
    (learned,) = (tmp_path / "cache" / "spillway" / "statistics").glob("*.json")
    ((way, factor),) = json.loads(learned.read_text()).items()
    assert way == summary["way"]
    learned.write_text(json.dumps({way: factor * 50}))
    small = replace(config, memory_bytes=100 << 20)
    if where:
        with pytest.raises(BudgetError, match="is too small"):
            plan_computation(spark, sql + where, specs, small)
    else:
        assert plan_computation(spark, sql, specs, small).plan.way == "statements"
    learned.write_text("damaged")
    assert plan_computation(spark, sql + where, specs, config).plan.way == way


def test_tasks_that_would_hold_too_much_give_way_to_statements(
    spark: SparkSession, tmp_path: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate is far too low: tasks stop, nothing is written, and statements compute the view."""
    monkeypatch.setattr("spillway.compute.plan.column_bytes", lambda *_: 1.0)
    sql, specs = stored(tmp_path / "data", 3, rows=150_000)
    computation = plan_computation(spark, sql, specs, ComputeConfig(memory_bytes=12 << 20, tree="greedy"))
    resources = replace(computation.facts.resources, table_page_bytes=float(1 << 10))
    computation.facts = replace(computation.facts, resources=resources)
    assert computation.plan.way == "columns"
    summary = computation.run(SinkSpec("parquet", str(tmp_path / "out")))
    assert summary["way"] == "statements"
    assert "would hold more than the memory limit" in summary["reason"]
    assert counted(pq.read_table(tmp_path / "out")) == counted(truth(sql, specs))


def test_statistics_are_those_of_the_files_whatever_the_sources_are_called(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two sources whose names were swapped have each other's files."""
    for name, count in (("large", 5_000), ("small", 5)):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"k": list(range(count))}), tmp_path / name / "part.parquet")
    sql = "SELECT a.k FROM a JOIN b ON a.k = b.k"
    large, small = (SourceSpec("x", "parquet", str(tmp_path / name)) for name in ("large", "small"))
    for sources, rows in (({"a": large, "b": small}, [5_000, 5]), ({"b": large, "a": small}, [5, 5_000])):
        computation = plan_computation(
            spark, sql, {name: replace(one, name=name) for name, one in sources.items()}
        )
        assert [relation.rows for relation in computation.facts.statistics] == rows


def test_a_tpch_query_by_both(spark: SparkSession, tmp_path: Path) -> None:
    """A few rows of three tables: both give the same bag, and the metrics say what ran."""
    from datetime import date

    days = [date(1995, 3, 1 + n % 28) for n in range(60)]
    tables = {
        "customer": pa.table({"c_custkey": list(range(9)), "c_mktsegment": ["BUILDING", "OTHER", "X"] * 3}),
        "orders": pa.table(
            {
                "o_orderkey": list(range(60)), "o_custkey": [n % 9 for n in range(60)], "o_orderdate": days,
                "o_shippriority": [0] * 60,
            }
        ),
        "lineitem": pa.table(
            {
                "l_orderkey": [n % 60 for n in range(240)], "l_extendedprice": [1.5] * 240,
                "l_discount": [0.5] * 240, "l_shipdate": days[::-1] * 4,
            }
        ),
    }  # fmt: skip
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    (tmp_path / "scratch").mkdir()
    metrics = query_metrics(TpchBench(spark, UnitCosts(), tmp_path, tmp_path / "scratch").run("q3", 1))
    assert metrics["rows"] > 0
    assert metrics["way"] in ("spark", "statements")
    assert metrics["ratio"] > 0
    assert list((tmp_path / "scratch").iterdir()) == []
    with pytest.raises(JobError, match=r"has no nation\.parquet"):
        tables_of("q5", tmp_path)
