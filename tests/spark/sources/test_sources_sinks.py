"""Where rows come from and where results go: job files, the workload, users' frames, and every sink."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from spillway.errors import CheckpointError, SinkError, SourceError
from spillway.job import read_job
from spillway.spark.session.session import Session
from spillway.spark.sinks.count import CountSink
from spillway.state.storage.storage import Storage
from spillway.workload.row_slices import rows
from spillway.workload.workload import Workload

if TYPE_CHECKING:
    from conftest import Lab

SQL = "SELECT a.id AS p, b.id AS q, c.id AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
KEYS = {
    "input_rows",
    "results_runtime",
    "results_cleanup",
    "epochs",
    "spills",
    "relocations",
    "seconds",
    "resident_bytes_peak",
}
"""What the last line of standard output has at least, by the job file reference."""


def fill(lab: "Lab", epochs: int = 2) -> None:
    for number, name in enumerate("abc"):
        for epoch in range(epochs):
            keys = [(number + epoch + n) % 4 for n in range(7)]
            lab.stream(
                name, pa.table({"k": pa.array(keys, pa.int64()), "id": [7 * epoch + n for n in range(7)]})
            )


def test_a_workload_through_a_job_file(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]], counted: Callable[[pa.Table], Counter[Any]]
) -> None:
    """The last line of standard output, and the only one, is one JSON object; paths are the job file's."""
    shape = "tupleRange = 120, partitions = 30"
    sources = "".join(
        f'[sources.{name}]\nformat = "workload"\n'
        f'options = {{ stream = "{name}", rows = 600, rowsPerTrigger = 200, seed = 3, {shape} }}\n'
        for name in "abc"
    )
    (tmp_path / "view.sql").write_text(SQL)
    job = tmp_path / "job.toml"
    job.write_text(
        f'[view]\nfile = "view.sql"\n{sources}[run]\nprocessors = 2\ngroups = 32\ncheckpoint = "state"\n'
        'memory = "8MB"\n[sink]\npath = "out"\n'
    )
    code, output, error = command("run", job, "--json")
    assert code == 0, error
    assert len(output.splitlines()) == 1
    summary = json.loads(output)
    assert summary.keys() >= KEYS
    assert summary["input_rows"] == 1_800
    assert summary["epochs"] == 3
    assert len(summary["resident_bytes_peak"]) == 2
    workload = Workload(seed=3, tuple_range=120, partitions=30)
    with duckdb.connect() as database:
        for name in "abc":
            database.register(name, pa.Table.from_batches([rows(workload, name, 0, 600)]))
        expected = counted(database.sql(SQL).to_arrow_table())
    assert expected
    assert counted(DeltaTable(str(tmp_path / "out")).to_pyarrow_table()) == expected
    assert summary["results_runtime"] == sum(expected.values())
    assert (tmp_path / "state" / "journal.jsonl").exists()
    again, output, error = command("run", job)
    assert (again, output) == (0, "")
    assert "1,800 rows in" in error
    assert str(tmp_path / "out") in error


def test_a_job_of_files_runs_through_the_api_too(lab: "Lab") -> None:
    fill(lab)
    job = lab.directory / "job.toml"
    job.write_text(
        f'[view]\nsql = "{SQL}"\n'
        + "".join(
            f'[sources.{name}]\nformat = "parquet"\npath = "data/{name}"\n{schema}\n'
            'options = { maxFilesPerTrigger = "1" }\n'
            for name, schema in (
                ("a", 'schema = "k long, id long"'),
                ("b", ""),
                ("c", 'schema = "id bigint, k bigint"'),
            )
        )
        + '[run]\ncheckpoint = "state"\ntier = "tier"\n[sink]\nformat = "parquet"\npath = "out"\n'
    )
    query = lab.session().run_job(read_job(job))
    assert query.awaitTermination(120)
    assert query.summary()["epochs"] == 2
    assert lab.results("parquet") == lab.duckdb(SQL)


def test_other_formats_of_files(lab: "Lab") -> None:
    fill(lab, 1)
    streams = {}
    for name, kind in (("a", "json"), ("b", "csv"), ("c", "orc")):
        path = str(lab.directory / kind)
        lab.spark.read.parquet(str(lab.directory / "data" / name)).write.format(kind).save(path)
        streams[name] = (
            lab.spark.readStream.format(kind).schema("k long, id long").option("mode", "FAILFAST").load(path)
        )
    lab.run(SQL, sources=streams)
    assert lab.results() == lab.duckdb(SQL)


def test_users_frames_may_be_any_stateless_query(lab: "Lab") -> None:
    fill(lab)
    streams = {name: lab.source(name) for name in "abc"}
    streams["b"] = streams["b"].where("id % 2 = 0").selectExpr("k", "id * 10 AS id")
    streams["c"] = streams["c"].union(lab.source("c"))
    lab.run(SQL, sources=streams)
    joined = SQL.replace("FROM a, b, c", "FROM a, (SELECT k, id * 10 AS id FROM b WHERE id % 2 = 0) b, c2 c")
    lab.tables["c2"] = lab.tables["c"] * 2
    assert lab.results() == lab.duckdb(joined)


def test_a_table_that_is_not_a_stream_is_refused(lab: "Lab") -> None:
    fill(lab, 1)
    streams = {name: lab.source(name) for name in "ab"} | {
        "c": lab.spark.read.parquet(str(lab.directory / "data" / "c"))
    }
    with pytest.raises(
        SourceError, match=r"source c is not a streaming DataFrame; open it with spark\.readStream"
    ):
        lab.start(SQL, sources=streams)
    assert not lab.checkpoint.exists()


def test_a_session_that_is_handed_over_is_not_stopped(lab: "Lab") -> None:
    with Session(lab.spark) as session:
        assert session.spark is lab.spark
    assert lab.spark.range(3).count() == 3


def test_memory_sink_is_a_view_that_grows_and_survives_a_restart(
    lab: "Lab", counted: Callable[[pa.Table], Counter[Any]]
) -> None:
    fill(lab)
    lab.run(SQL, sink="memory", options={"name": "joined"})
    assert counted(lab.spark.table("joined").toArrow()) == lab.duckdb(SQL)
    fill(lab, 1)
    lab.run(SQL, sink="memory", options={"name": "joined"})
    assert counted(lab.spark.table("joined").toArrow()) == lab.duckdb(SQL)
    lab.spark.catalog.dropTempView("joined")


def test_count_sink_keeps_no_row(lab: "Lab") -> None:
    fill(lab)
    query = lab.start(SQL, sink="count")
    assert query.awaitTermination(120)
    total = sum(lab.duckdb(SQL).values())
    assert query.summary()["results_runtime"] == total
    assert CountSink(Storage(str(lab.checkpoint / "sink"))).total_rows(query.id) == total
    assert not list(lab.checkpoint.rglob("*.parquet"))


def test_console_sink_shows_each_epoch(lab: "Lab", capsys: pytest.CaptureFixture[str]) -> None:
    fill(lab)
    lab.run(SQL, sink="console", options={"numRows": "3"})
    shown = capsys.readouterr().out
    totals = [int(line.split()[3]) for line in shown.splitlines() if line.startswith("showing 3 of ")]
    assert sum(totals) == sum(lab.duckdb(SQL).values())
    assert [line for line in shown.splitlines() if line.startswith("Epoch")] == ["Epoch: 0", "Epoch: 1"]


def test_function_sink_gets_each_epoch_once_and_a_failed_one_again(
    lab: "Lab", counted: Callable[[pa.Table], Counter[Any]]
) -> None:
    fill(lab, 3)
    got: list[tuple[int, Counter[Any]]] = []
    fails = [1]

    def function(frame: DataFrame, sequence: int) -> None:
        if sequence in fails:
            fails.remove(sequence)
            raise RuntimeError("the mail server\nis down")
        got.append((sequence, counted(frame.toArrow())))

    query = lab.start(SQL, function=function)
    with pytest.raises(SinkError, match=r"failed on epoch 1: RuntimeError: the mail server is down; .*again"):
        query.awaitTermination(120)
    lab.run(SQL, function=function)
    assert [sequence for sequence, _ in got] == [0, 1, 2]
    assert sum((rows for _, rows in got), Counter()) == lab.duckdb(SQL)


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_another_sink_cannot_take_over_in_the_middle(lab: "Lab", sink: str) -> None:
    """What the first sink has, the second would lack: refused, and the first goes on."""
    fill(lab)
    lab.run(SQL, sink=sink)
    fill(lab, 1)
    with pytest.raises(CheckpointError, match=r"not in the sink .*elsewhere: the sink changed"):
        lab.start(SQL, sink=sink, path=str(lab.directory / "elsewhere"))
    assert not (lab.directory / "elsewhere").exists()
    lab.run(SQL, sink=sink)
    assert lab.results(sink) == lab.duckdb(SQL)


def test_parquet_output_is_what_any_reader_sees(lab: "Lab") -> None:
    fill(lab)
    lab.run(SQL, sink="parquet")
    total = sum(lab.duckdb(SQL).values())
    assert lab.spark.read.parquet(str(lab.out)).count() == total
    assert pq.read_table(lab.out).num_rows == total
