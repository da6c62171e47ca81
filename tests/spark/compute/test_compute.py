"""Views over stored relations: every tree gives DuckDB's rows, also in pieces; sinks, sources, cancel."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spillway.compute import ComputeConfig
from spillway.compute.join_graph import members_of
from spillway.compute.tree import steps
from spillway.compute.trees.choice import ALGORITHMS, choose
from spillway.errors import ComputeError, SinkError, SourceError
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.spark.compute.computation import Computation, plan_computation
from spillway.spark.compute.segment_progress import SegmentEvent
from spillway.spark.compute.view_writer import ViewWriter
from spillway.workload.multi_join import MultiJoin, generate_query

SMALL = {"rows": (20, 400), "result_rows": (200, 2_000)}
Counted = Callable[[pa.Table], Counter[Any]]


def expected(tables: dict[str, pa.Table], sql: str) -> pa.Table:
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        return database.sql(sql).to_arrow_table()


def tables_of(query: MultiJoin) -> dict[str, pa.Table]:
    return {one.name: query.table(index) for index, one in enumerate(query.relations)}


def frames(spark: SparkSession, tables: dict[str, pa.Table]) -> dict[str, Any]:
    return {name: spark.createDataFrame(table) for name, table in tables.items()}


def check_measured(computation: Computation, summary: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    """Every join of every segment has the rows that DuckDB counts for its relations."""
    graph = computation.plan.cost.graph
    for segment, told in zip(computation.plan.tree.segments(), summary["segments"], strict=True):
        for step, join in zip(steps(graph, segment), told["joins"], strict=True):
            members = list(members_of(step.after))
            conditions = [
                f"r{a}.k{key} = r{b}.k{key}"
                for a, b in combinations(members, 2)
                for key in {name[1:] for name in tables[f"r{a}"].column_names if name[0] == "k"}
                if f"k{key}" in tables[f"r{b}"].column_names
            ]
            names = ", ".join(f"r{one}" for one in members)
            text = f"SELECT count(*) AS n FROM {names} WHERE {' AND '.join(conditions)}"
            assert join["measured_rows"] == expected(tables, text)["n"][0].as_py(), (segment, step)


@pytest.mark.parametrize(
    ("memory_bytes", "names"),
    [(None, tuple(ALGORITHMS)), (40 << 20, ("segmented-right-deep", "segmented-bushy", "incremental"))],
    ids=["no-limit", "limit"],
)
def test_trees_give_the_same_rows(
    spark: SparkSession, tmp_path: Path, counted: Counted, memory_bytes: int | None, names: tuple[str, ...]
) -> None:
    """Skewed keys, nulls; without a limit, and with memory for a part of the hash tables."""
    query = generate_query(4, 3, skew=0.5, null_share=0.1, **SMALL)
    tables = tables_of(query)
    truth = counted(expected(tables, query.sql))
    assert truth
    sources = frames(spark, tables)
    computation = plan_computation(
        spark, query.sql, sources, ComputeConfig(way="tree", memory_bytes=memory_bytes)
    )
    seen: set[object] = set()
    for name in names:
        plan = computation.plan = computation.plan.with_tree(choose(computation.plan.cost, name).tree)
        if plan.tree in seen:
            continue
        seen.add(plan.tree)
        assert memory_bytes is None or len(list(plan.tree.segments())) > 1
        out = tmp_path / name
        summary = computation.run(SinkSpec("parquet", str(out)))
        assert counted(pq.read_table(out)) == truth, name
        assert summary["segments"][-1]["joins"][-1]["measured_rows"] == summary["rows"] == truth.total()
        check_measured(computation, summary, tables)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert not spark.sparkContext._jsc.getPersistentRDDs()


@pytest.mark.parametrize("where", ["", " WHERE r0.id >= 0"], ids=["columns", "sql"])
def test_plain_files_are_joined_by_columns(
    spark: SparkSession, tmp_path: Path, counted: Counted, where: str
) -> None:
    """A filter needs Spark; without one, tasks read the files. Both measure the same rows."""
    query = generate_query(5, 4, null_share=0.1, **SMALL)
    tables = tables_of(query)
    query.write(tmp_path / "data")
    specs = {name: SourceSpec(name, "parquet", str(tmp_path / "data" / name)) for name in tables}
    config = ComputeConfig(tree="greedy")
    computation = plan_computation(spark, query.sql + where, specs, config)
    assert computation.plan.cost.machine.by_columns == (not where)
    summary = computation.run(SinkSpec("parquet", str(tmp_path / "out")))
    assert counted(pq.read_table(tmp_path / "out")) == counted(expected(tables, query.sql))
    check_measured(computation, summary, tables)
    assert summary["table_bytes_peak"] > 0


def test_columns_that_tasks_cannot_read_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Text as key, a partitioned directory, options for the reader: Spark reads these."""
    pq.write_table(pa.table({"k": ["x"], "n": [1]}), tmp_path / "text.parquet")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "number.parquet")
    (tmp_path / "parts" / "n=1").mkdir(parents=True)
    pq.write_table(pa.table({"k": ["x"]}), tmp_path / "parts" / "n=1" / "one.parquet")
    text = SourceSpec("a", "parquet", str(tmp_path / "text.parquet"))
    for other, on in (
        (replace(text, name="b"), "a.k = b.k"),
        (SourceSpec("b", "parquet", str(tmp_path / "parts")), "a.n = b.n"),
        (
            SourceSpec("b", "parquet", str(tmp_path / "number.parquet"), options={"mergeSchema": "true"}),
            "a.n = b.n",
        ),
    ):
        computation = plan_computation(
            spark, f"SELECT a.n AS m FROM a JOIN b ON {on}", {"a": text, "b": other}
        )
        assert computation.plan.way == "spark"
        assert computation.run(SinkSpec("count"))["rows"] == 1


@pytest.mark.parametrize("partitioned", [False, True])
def test_cycles_residuals_expressions_and_types(
    spark: SparkSession, tmp_path: Path, counted: Counted, partitioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if partitioned:
        monkeypatch.setattr("spillway.compute.planner.REPLICATE_BYTES", 0.0)
    tables = {
        "a": pa.table(
            {"k": [1, 2, 2, None, 5], "x": pa.array([1, 2, 3, 4, 5], pa.int32()), "s": list("abcde")}
        ),
        "b": pa.table({"k": [2, 2, 1, None, 9], "y": [1.0, 2.0, 3.0, 4.0, 5.0]}),
        "c": pa.table({"x": [1, 2, 3, 3, 7], "y": [1, 2, 3, 1, 7], "t": ["p", None, "q", "r", "s"]}),
    }
    sql = (
        "SELECT a.s || '-' || coalesce(c.t, '') AS st, b.y * 2 AS y2 FROM a JOIN b ON a.k = b.k "
        "JOIN c ON a.x = c.x AND b.y = c.y WHERE a.x < b.y + 3 AND b.y > 0.5"
    )
    computation = plan_computation(spark, sql, frames(spark, tables), ComputeConfig(tree="segmented-bushy"))
    computation.run(SinkSpec("parquet", str(tmp_path / "out")))
    truth = counted(expected(tables, sql))
    assert truth
    assert counted(pq.read_table(tmp_path / "out")) == truth


def test_an_empty_relation_empties_the_view(spark: SparkSession, tmp_path: Path) -> None:
    query = generate_query(4, 1, **SMALL)
    tables = tables_of(query)
    tables["r2"] = tables["r2"].slice(0, 0)
    computation = plan_computation(spark, query.sql, frames(spark, tables))
    assert computation.run(SinkSpec("delta", str(tmp_path / "out")))["rows"] == 0
    assert DeltaTable(tmp_path / "out").to_pyarrow_table().num_rows == 0


def test_stored_sources_of_all_formats(spark: SparkSession, tmp_path: Path, counted: Counted) -> None:
    query = generate_query(5, 7, **SMALL)
    tables = tables_of(query)
    kinds = ("parquet", "csv", "delta", "duckdb", "sqlite")
    specs = {}
    for (name, table), kind in zip(tables.items(), kinds, strict=True):
        specs[name] = _store(table, name, kind, tmp_path)
    out = tmp_path / "out"
    plan_computation(spark, query.sql, specs).run(SinkSpec("delta", str(out)))
    assert counted(DeltaTable(out).to_pyarrow_table()) == counted(expected(tables, query.sql))
    with pytest.raises(SinkError, match="is not empty"):
        plan_computation(spark, query.sql, specs).run(SinkSpec("delta", str(out)))
    assert DeltaTable(out).version() == 0


def _store(table: pa.Table, name: str, kind: str, directory: Path) -> SourceSpec:
    path = directory / f"{name}.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "delta":
        write_deltalake(path, table)
    elif kind == "csv":
        with duckdb.connect() as database:
            database.register("t", table)
            database.execute(f"COPY t TO '{path}' (HEADER)")
        schema = ", ".join(f"{one} {'string' if one == 'p' else 'long'}" for one in table.column_names)
        return SourceSpec(name, kind, str(path), schema=schema, options={"header": "true"})
    elif kind == "duckdb":
        with duckdb.connect(str(path)) as database:
            database.register("t", table)
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM t")
    else:
        import sqlite3
        from contextlib import closing

        with closing(sqlite3.connect(path)) as connection:
            table.to_pandas().to_sql('odd "name', connection, index=False)
        return SourceSpec(name, kind, str(path), options={"table": 'odd "name'})
    return SourceSpec(name, kind, str(path))


def test_bad_sources_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    sql = "SELECT a.k FROM a JOIN b ON a.k = b.k"
    other = spark.createDataFrame(pa.table({"k": [1]}))
    for spec, message in (
        (SourceSpec("a", "kafka"), "stored relations are parquet"),
        (SourceSpec("a", "parquet", str(tmp_path / "no")), "does not exist"),
        (SourceSpec("a", "table", options={"table": "nowhere"}), "cannot be opened"),
    ):
        with pytest.raises(SourceError, match=message):
            plan_computation(spark, sql, {"a": spec, "b": other})


def test_cancel_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Every row of one relation sleeps, so that the last segment runs when it is cancelled."""
    query = generate_query(3, 2, rows=(100, 150), result_rows=(100, 1_000))
    holder: list[Computation] = []

    def cancel(event: SegmentEvent) -> None:
        if not event.finished:
            threading.Timer(0.1, holder[0].cancel).start()

    sources = frames(spark, tables_of(query))
    sources["r0"] = sources["r0"].withColumn("p", F.expr("reflect('java.lang.Thread', 'sleep', 25L)"))
    config = ComputeConfig(way="tree", sample=0.01)
    holder.append(plan_computation(spark, query.sql, sources, config, listener=cancel))
    with pytest.raises(ComputeError, match="cancelled"):
        holder[0].run(SinkSpec("parquet", str(tmp_path / "out")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("way", "sink"), [("tree", "parquet"), ("spark", "delta"), ("tree", "count")])
def test_cancel_withdraws_a_complete_result(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, sink: str
) -> None:
    """The jobs are over when the run is cancelled; what they wrote does not come to light."""
    query = generate_query(3, 2, rows=(100, 150), result_rows=(100, 1_000))
    made = plan_computation(
        spark, query.sql, frames(spark, tables_of(query)), ComputeConfig(way=way, sample=0.01)
    )
    check = ViewWriter.check_wanted

    def cancelled(writer: ViewWriter) -> None:
        made.cancel()
        check(writer)

    monkeypatch.setattr(ViewWriter, "check_wanted", cancelled)
    with pytest.raises(ComputeError, match="cancelled"):
        made.run(SinkSpec(sink, None if sink == "count" else str(tmp_path / "out")))
    assert list(tmp_path.iterdir()) == []
