"""Plans of jobs without Spark: what is known, and what is left to Spark, with its reason."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from spillway.catalog.job_plan import plan_streams
from spillway.catalog.streams import stream_columns
from spillway.errors import SourceError, ViewError
from spillway.job.sources import SourceSpec
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.typing import NeedsSparkError

TABLE = pa.table(
    {
        "k": pa.array([1, 2], pa.int64()),
        "s": ["a", "b"],
        "ts": pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 2, pa.timestamp("us", "UTC")),
    }
)
SQL = "SELECT a.s AS p, upper(b.s) AS q FROM a, b WHERE a.k = b.k"
DELTA = {
    "spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def parquet(directory: Path, name: str, **keys: str) -> SourceSpec:
    (directory / name).mkdir(exist_ok=True)
    pq.write_table(TABLE, directory / name / "0.parquet")
    return SourceSpec(name, "parquet", str(directory / name), **keys)  # type: ignore[arg-type]


def test_columns_of_parquet_files(tmp_path: Path) -> None:
    sources = {name: parquet(tmp_path, name) for name in "ab"}
    plan, types = plan_streams(View.sql(SQL), sources, {"spark.driver.memory": "2g"})
    assert types.keys == ("bigint",)
    assert [str(field.type) for field in types.schema] == ["string", "string"]
    assert [input_.name for input_ in plan.inputs] == ["a", "b"]


def test_types_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    sources = {name: parquet(tmp_path, name) for name in "ab"}
    with pytest.raises(
        ViewError, match=r"key type mismatch: a\.k is bigint, .*upper\(b\.s\) is string; cast one"
    ):
        plan_streams(View.sql("SELECT a.s FROM a, b WHERE a.k = upper(b.s)"), sources, {})
    with pytest.raises(NeedsSparkError, match=r"only Spark knows the type of soundex\(s\) \(input b\)"):
        plan_streams(View.sql(SQL.replace("upper", "soundex")), sources, {})


def test_windows_go_by_the_event_time(tmp_path: Path) -> None:
    timed = {name: parquet(tmp_path, name, event_time="ts", lateness="2 minutes") for name in "ab"}
    assert stream_columns(timed["a"])[2] == Column("ts", "timestamp", 120_000_000)
    view = View.sql("SELECT a.k FROM a [RANGE 5 MINUTES], b [RANGE 5 MINUTES] WHERE a.k = b.k")
    plan, types = plan_streams(view, timed, {})
    assert types.inputs[1].columns[0].spark == "bigint"
    assert len(plan.inputs) == 2
    for keys in ({"event_time": "k"}, {"event_time": "nope"}, {"event_time": "ts", "lateness": "1 month"}):
        with pytest.raises(NeedsSparkError, match="event_time"):
            stream_columns(parquet(tmp_path, "a", **keys))


def test_delta_tables_need_a_reader_in_spark(tmp_path: Path) -> None:
    for name in "ab":
        write_deltalake(str(tmp_path / name), TABLE)
    sources = {name: SourceSpec(name, "delta", str(tmp_path / name)) for name in "ab"}
    _, types = plan_streams(View.sql(SQL), sources, DELTA)
    assert types.keys == ("bigint",)
    with pytest.raises(NeedsSparkError, match='format = "delta"'):
        plan_streams(View.sql(SQL), sources, {})
    with pytest.raises(NeedsSparkError, match=r"sets spark\.sql\.extensions"):
        plan_streams(View.sql(SQL), sources, {"spark.sql.extensions": "my.Own"})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "kafka"}, 'format = "kafka"'),
        ({"format": "csv"}, 'format = "csv" and no schema'),
        ({"options": {"mergeSchema": "true"}}, "the option mergeSchema"),
        ({"schema": "k long, t time(6)"}, "schema = "),
        ({"schema": "k long, t variant"}, "column t of type variant"),
        ({"path": "{path}/*.parquet"}, "is not a plain one on this machine"),
        ({"path": "s3://bucket/a"}, "is not a plain one on this machine"),
        ({"path": "{path}/0.parquet"}, "is not a directory"),
        ({"schema": "k long, extra int"}, "has no column extra, but other files may"),
    ],
)
def test_what_is_left_to_spark(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    parquet(tmp_path, "a")
    keys: dict[str, object] = {"format": "parquet", "path": str(tmp_path / "a")} | changes
    keys["path"] = str(keys["path"]).replace("{path}", str(tmp_path / "a"))
    with pytest.raises(NeedsSparkError) as error:
        stream_columns(SourceSpec("a", **keys))  # type: ignore[arg-type]
    assert reason in str(error.value)


def test_settings_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {name: parquet(tmp_path, name) for name in "ab"}
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    with pytest.raises(NeedsSparkError, match="HADOOP_CONF_DIR is set"):
        plan_streams(View.sql(SQL), sources, {})


def test_refusals_of_sources(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"schema has s int, but the files in .* have s string; correct"):
        stream_columns(parquet(tmp_path, "a", schema="k long, s int"))
    with pytest.raises(SourceError, match=r"\[sources\.a\] bad schema 'k lnog': unknown type 'lnog'"):
        stream_columns(parquet(tmp_path, "a", schema="k lnog"))
    with pytest.raises(SourceError, match="does not exist; create it, or correct the path"):
        stream_columns(SourceSpec("a", "parquet", str(tmp_path / "nowhere")))


def test_directories_are_columns(tmp_path: Path) -> None:
    for day in ("2024-01-01", "2024-01-02"):
        parquet(tmp_path, f"day={day}")
    assert stream_columns(SourceSpec("a", "parquet", str(tmp_path)))[-1] == Column("day", "date")
    declared = SourceSpec("a", "json", str(tmp_path), "day string, k long")
    assert stream_columns(declared) == (Column("k", "bigint"), Column("day", "string"))
    parquet(tmp_path, "day=other")
    with pytest.raises(NeedsSparkError, match="whose values only Spark can type"):
        stream_columns(SourceSpec("a", "parquet", str(tmp_path)))
