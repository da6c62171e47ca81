"""Console, count and function sinks, and the factory; no Spark: the function gets names for a DataFrame."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spillway.errors import SinkError
from spillway.manager import StagedEpoch
from spillway.spark.sinks.console import ConsoleSink
from spillway.spark.sinks.count import CountSink
from spillway.spark.sinks.factory import FORMATS, open_sink
from spillway.spark.sinks.function import FunctionSink
from spillway.state.storage.storage import Storage


class Names:
    """Stands for the reader of DataFrames: a frame is the list of its files."""

    def prepare(self, schema: pa.Schema) -> None:
        self.schema = schema

    def frame(self, names: list[str]) -> list[str]:
        return names


def test_count_goes_on_after_a_restart_and_counts_once(tmp_path: Path) -> None:
    for turn in range(2):
        sink = CountSink(Storage(str(tmp_path)))
        sink.prepare("q", pa.schema([("gap", pa.duration("us"))]))
        assert sink.staging is None and sink.last_committed("q") == turn - 1
        for _ in range(2):
            sink.commit(StagedEpoch(turn, "q", (), 10**9))
        assert sink.total_rows("q") == (turn + 1) * 10**9
        assert sink.sweep([]) == 0
        sink.close()
    assert len(list((tmp_path / "_spillway" / "commits").iterdir())) == 1


def test_console_prints_the_first_rows_and_keeps_no_file(tasks: Any, tmp_path: Path) -> None:
    output = io.StringIO()
    sink = ConsoleSink(Storage(str(tmp_path)), shown_rows=3, cell_characters=4, output=output)
    sink.prepare(tasks.query_id, tasks.schema)
    epoch = tasks.stage(sink.staging, 7, [[1, 12345], [3, 4]])
    for _ in range(2):
        sink.commit(epoch)
    sink.commit(tasks.stage(sink.staging, 8, []))
    rule, border = "-" * 43, "+----+----+"
    table = [border, "|  id|name|", border, "|   1|  n1|", "|1...|n...|", "|   3|  n3|", border]
    expected = [rule, "Epoch: 7", rule, *table, "showing 3 of 4 rows"]
    assert output.getvalue().splitlines() == expected
    assert sink.last_committed(tasks.query_id) == 8
    assert list(Path(sink.staging).iterdir()) == []


def test_function_is_called_again_only_if_it_failed(tasks: Any, tmp_path: Path) -> None:
    calls: list[int] = []

    def fails_once(frame: Any, sequence: int) -> None:
        assert len(frame) == 2 and all(Storage(str(tmp_path)).exists(name) for name in frame)
        calls.append(sequence)
        if len(calls) == 1:
            raise ValueError("no connection\nto the warehouse")

    sink = FunctionSink(Storage(str(tmp_path)), Names(), fails_once)  # type: ignore[arg-type]
    sink.prepare(tasks.query_id, tasks.schema)
    epoch = tasks.stage(sink.staging, 0, [[1], [2]])
    with pytest.raises(SinkError, match="epoch 0: ValueError: no connection to the warehouse"):
        sink.commit(epoch)
    for _ in range(2):
        sink.commit(epoch)
    sink.commit(tasks.stage(sink.staging, 1, []))
    assert calls == [0, 0]
    assert sink.last_committed(tasks.query_id) == 1
    assert list(Path(sink.staging).iterdir()) == []


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    sink = CountSink(Storage(str(tmp_path)))
    sink.prepare("q", pa.schema([("a", pa.int8())]))
    (tmp_path / "_spillway" / "query.json").write_text("{")
    with pytest.raises(SinkError, match=r"_spillway/query.json is damaged"):
        sink.last_committed("q")


@pytest.mark.parametrize(
    ("sink_format", "path", "options", "message"),
    [
        ("csv", "out", {}, f"unknown sink format 'csv'; formats are {', '.join(FORMATS)}"),
        ("delta", None, {}, "'delta' needs a path"),
        ("parquet", "", {}, "'parquet' needs a path"),
        ("parquet", "out", {"compression": "x"}, "no option 'compression'; its options: none"),
        ("delta", "out", {"mergeSchema": "x"}, "no option 'mergeSchema'"),
        ("console", "out", {}, "takes no path"),
        ("console", None, {"numRows": "many"}, "numRows = 'many' is not a whole number"),
        ("memory", None, {}, "'memory' needs a Spark session"),
        ("function", None, {}, "'function' needs a Spark session"),
    ],
)
def test_bad_sinks_are_refused_before_anything_is_made(
    tmp_path: Path, sink_format: str, path: str | None, options: dict[str, str], message: str
) -> None:
    where = str(tmp_path / path) if path else path
    with pytest.raises(SinkError, match=message):
        open_sink(sink_format, where, options, checkpoint_dir=str(tmp_path / "checkpoint"))
    assert list(tmp_path.iterdir()) == []


def test_options_of_console(tasks: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"numRows": "1", "truncate": "false"}
    sink = open_sink("console", None, options, checkpoint_dir=str(tmp_path))
    sink.prepare(tasks.query_id, tasks.schema)
    sink.commit(tasks.stage(sink.staging, 0, [[10**17, 2]]))
    assert "|100000000000000000|n100000000000000000|" in capsys.readouterr().out
