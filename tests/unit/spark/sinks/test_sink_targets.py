"""Delta and Parquet targets: whose they are, what is refused, what readers see, and what a commit costs."""

import os
import statistics
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spillway.errors import SinkError
from spillway.manager import ResultFile, StagedEpoch
from spillway.spark.sinks.factory import open_sink
from spillway.spark.sinks.sink import Sink


@pytest.fixture(params=["delta", "parquet"])
def sink_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(sink_format: str, path: Path, **options: str) -> Sink:
    return open_sink(sink_format, str(path), options, checkpoint_dir=str(path.parent / "checkpoint"))


def read_rows(sink_format: str, path: Path) -> list[tuple[int, str]]:
    if sink_format == "delta":
        files = DeltaTable(path).file_uris()
    else:
        files = sorted(map(str, path.glob("*.parquet")))
    with duckdb.connect() as database:
        return database.sql(f"SELECT id, name FROM read_parquet({files!r}) ORDER BY id").fetchall()


def test_epochs_become_visible_one_by_one(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    sink = opened(sink_format, tmp_path / "out")
    sink.prepare(tasks.query_id, tasks.schema)
    assert sink.last_committed(tasks.query_id) == -1
    sink.commit(tasks.stage(sink.staging, 0, [[1], [2, 3]]))
    staged = tasks.stage(sink.staging, 2, [[4]])
    assert read_rows(sink_format, tmp_path / "out") == [(1, "n1"), (2, "n2"), (3, "n3")]
    sink.commit(staged)
    assert [row[0] for row in read_rows(sink_format, tmp_path / "out")] == [1, 2, 3, 4]
    assert sink.last_committed(tasks.query_id) == 2
    sink.close()


def test_an_empty_epoch_moves_the_sequence(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    sink = opened(sink_format, tmp_path / "out")
    sink.prepare(tasks.query_id, tasks.schema)
    sink.commit(tasks.stage(sink.staging, 0, [[1]]))
    sink.commit(tasks.stage(sink.staging, 1, []))
    again = opened(sink_format, tmp_path / "out")
    again.prepare(tasks.query_id, tasks.schema)
    assert again.last_committed(tasks.query_id) == 1
    assert read_rows(sink_format, tmp_path / "out") == [(1, "n1")]


def test_sweep_deletes_what_no_manifest_lists(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    sink = opened(sink_format, tmp_path / "out")
    sink.prepare(tasks.query_id, tasks.schema)
    sink.commit(tasks.stage(sink.staging, 0, [[1]]))
    waiting, failed = tasks.stage(sink.staging, 1, [[2]]), tasks.stage(sink.staging, 2, [[3], [4]])
    assert sink.sweep([file.path for file in waiting.files]) == len(failed.files)
    sink.commit(waiting)
    assert [row[0] for row in read_rows(sink_format, tmp_path / "out")] == [1, 2]


def test_another_querys_output_is_refused(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    opened(sink_format, tmp_path / "out").prepare(tasks.query_id, tasks.schema)
    with pytest.raises(SinkError, match=r"out .*another query \(query-1\)"):
        opened(sink_format, tmp_path / "out").prepare("query-2", tasks.schema)


def test_changed_columns_are_refused(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    opened(sink_format, tmp_path / "out").prepare(tasks.query_id, tasks.schema)
    changed = tasks.schema.set(0, pa.field("id", pa.string()))
    with pytest.raises(SinkError, match="columns"):
        opened(sink_format, tmp_path / "out").prepare(tasks.query_id, changed)


def test_a_foreign_directory_is_refused_and_left_alone(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    with pytest.raises(SinkError, match="use a new or empty directory"):
        opened(sink_format, tmp_path / "out").prepare(tasks.query_id, tasks.schema)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["letter.txt"]


def test_a_foreign_delta_table_is_refused(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "out", pa.table({"id": [1], "name": ["x"]}, schema=tasks.schema))
    with pytest.raises(SinkError, match=r"other than Spillway|did not write"):
        opened(sink_format, tmp_path / "out").prepare(tasks.query_id, tasks.schema)


def test_an_unwritable_target_is_one_line(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SinkError, match=r"cannot write to .*file/out") as caught:
        opened(sink_format, tmp_path / "file" / "out").prepare(tasks.query_id, tasks.schema)
    assert "\n" not in str(caught.value)


def test_a_lost_or_cut_result_file_is_named(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    sink = opened(sink_format, tmp_path / "out")
    sink.prepare(tasks.query_id, tasks.schema)
    epoch = tasks.stage(sink.staging, 0, [[1]])
    file = epoch.files[0]
    cut = ResultFile(file.path, file.rows, file.bytes + 1)
    with pytest.raises(SinkError, match=r"task-0-attempt-0.parquet of epoch 0 has \d+ bytes"):
        sink.commit(StagedEpoch(0, tasks.query_id, (cut,), 1))
    lost = ResultFile("never.parquet", 1, 1)
    with pytest.raises(SinkError, match=r"never.parquet of epoch 0 is not in"):
        sink.commit(StagedEpoch(0, tasks.query_id, (lost,), 1))
    assert sink.last_committed(tasks.query_id) == -1
    sink.commit(epoch)
    assert read_rows(sink_format, tmp_path / "out") == [(1, "n1")]


def test_delta_keeps_what_other_writers_do_to_the_table(tasks: Any, tmp_path: Path) -> None:
    sink = opened("delta", tmp_path / "out", **{"delta.checkpointInterval": "3"})
    sink.prepare(tasks.query_id, tasks.schema)
    for sequence in range(8):
        sink.commit(tasks.stage(sink.staging, sequence, [[2 * sequence], [2 * sequence + 1]]))
        if sequence == 5:
            DeltaTable(tmp_path / "out").optimize.compact()
    table = DeltaTable(tmp_path / "out")
    assert table.metadata().configuration["delta.checkpointInterval"] == "3"
    assert len(table.file_uris()) < 8
    assert [row[0] for row in read_rows("delta", tmp_path / "out")] == list(range(16))


def test_delta_refuses_names_it_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="column 'a b' has ' ' in its name"):
        opened("delta", tmp_path / "out").prepare("q", pa.schema([("a b", pa.int64())]))
    assert not (tmp_path / "out").exists()


def test_delta_holds_every_type_of_a_view(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("small", pa.int8()),
            ("unsigned", pa.uint64()),
            ("real", pa.float32()),
            ("price", pa.decimal128(38, 10)),
            ("day", pa.date32()),
            ("at", pa.timestamp("ms", "Europe/Berlin")),
            ("wall", pa.timestamp("us")),
            ("raw", pa.large_binary()),
            ("tags", pa.list_(pa.string())),
            ("counts", pa.map_(pa.string(), pa.int32())),
            ("nested", pa.struct([("x", pa.list_(pa.timestamp("us", "UTC")))])),
        ]
    )
    for _ in range(2):
        opened("delta", tmp_path / "out").prepare("q", schema)
    kinds = {field.name: str(field.type) for field in DeltaTable(tmp_path / "out").schema().fields}
    assert kinds["unsigned"] == 'PrimitiveType("decimal(20,0)")'
    assert kinds["at"] == 'PrimitiveType("timestamp")' and kinds["wall"] == 'PrimitiveType("timestamp_ntz")'


def test_delta_drops_expired_log_entries(tasks: Any, tmp_path: Path) -> None:
    sink = opened("delta", tmp_path / "out")
    sink.prepare(tasks.query_id, tasks.schema)
    log = tmp_path / "out" / "_delta_log"
    for sequence in range(101):
        if sequence == 100:
            long_ago = time.time() - 3 * 24 * 3600
            for path in log.iterdir():
                os.utime(path, (long_ago, long_ago))
        sink.commit(tasks.stage(sink.staging, sequence, [[sequence]]))
    assert len(list(log.glob("*.json"))) < 20
    again = opened("delta", tmp_path / "out")
    again.prepare(tasks.query_id, tasks.schema)
    assert again.last_committed(tasks.query_id) == 100
    assert [row[0] for row in read_rows("delta", tmp_path / "out")] == list(range(101))


def test_commits_stay_cheap(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    sink = opened(sink_format, tmp_path / "out")
    sink.prepare(tasks.query_id, tasks.schema)
    moved = []
    for sequence in range(200):
        epoch = tasks.stage(sink.staging, sequence, [[sequence], [sequence]])
        before = moved_bytes()
        sink.commit(epoch)
        moved.append(moved_bytes() - before)
    early, late = statistics.mean(moved[20:60]), statistics.mean(moved[160:])
    assert 0 < late < 2.5 * early, f"{early:,.0f} bytes per commit became {late:,.0f}"


def moved_bytes() -> int:
    """What this process has read and written so far: unlike time, other processes have no part in it."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"]) + int(counters["wchar"])
