"""One row followed from its source to the sink, call by call: it goes through few files, and never back.

ARCHITECTURE.md lists the files. A call carries the row if an argument or the result holds it: a batch of
Arrow rows with its value, the DataFrame of its batch, or the file of results that is given to the sink.
"""

import dataclasses
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

import spillway
from spillway.job.sources import SourceSpec
from spillway.spark.session.session import Session
from spillway.spark.stream import epoch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = f"{Path(spillway.__file__).parent}/"
ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
NEEDLE = "needle"
MOST_FILES = 16
# Not stops of the way: values and storage that every stop uses, what stands in for an API of PySpark, and
# what the row leaves behind as state. Sources only look at files while a batch is checked.
NO_STOP = re.compile(
    r"model/|errors|plan/expression/|state/(rows|storage|memory|orders|log)/|spark/stream/arrow_tasks"
    r"|spark/sinks/staging|state/step/(state_view|run_writer|tally|retention)|spark/sources/"
)
TASK = ("spark/worker/", "state/")
"""What runs in the task of a processor, inside the job of the epoch."""
# Before the first batch the session opens sources and binds the plan; the row itself is not there yet.
SET_UP = ("spark/sources/streaming.py", "spark/stream/wire.py")
# The thread of a query runs the loop, which gives each batch to the query: there the way of its rows begins.
LOOP = ("spark/stream/query.py", "spark/stream/file_loop.py")
Calls = list[tuple[str, ...]]
"""The files on the stack of each call that carried the row, outermost first, neighbours once."""


def carries(value: object, depth: int = 4) -> bool:
    if isinstance(value, pa.RecordBatch | pa.Table):
        return any(carries(column) for column in value.columns)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        is_text = pa.types.is_string(value.type) or pa.types.is_large_string(value.type)
        return is_text and NEEDLE in value.to_pylist()
    if type(value).__name__ in ("DataFrame", "ResultFile"):
        return True
    if depth == 0 or isinstance(value, type):
        return False
    parts: list[object] = []
    if isinstance(value, list | tuple):
        parts = list(value)
    elif isinstance(value, Mapping):
        parts = list(value.values())
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return any(carries(part, depth - 1) for part in parts)


def profiler(calls: Calls) -> Callable[[FrameType, str, object], None]:
    def profile(frame: FrameType, event: str, result: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(PACKAGE):
            return
        sys.setprofile(None)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        seen = [frame.f_locals.get(name) for name in names if name != "self"] if event == "call" else [result]
        if any(map(carries, seen)):
            calls.append(stack(frame))
        sys.setprofile(profile)

    return profile


def stack(frame: FrameType | None) -> tuple[str, ...]:
    files: list[str] = []
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE) and files[-1:] != [name.removeprefix(PACKAGE)]:
            files.append(name.removeprefix(PACKAGE))
        frame = frame.f_back
    way = tuple(reversed(files))
    return way[len(LOOP) :] if way[: len(LOOP)] == LOOP and len(way) > len(LOOP) else way


def traced(make: Callable[..., Any], directory: str) -> Callable[..., Any]:
    """The function that makes a processor's task, whose task notes its calls in a file."""

    def made(*arguments: Any) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        task = make(*arguments)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            calls: Calls = []
            sys.setprofile(profiler(calls))
            rows = list(task(batches))
            sys.setprofile(None)
            Path(directory, f"{os.getpid()}-{id(calls)}.json").write_text(json.dumps(calls))
            yield from rows

        return run

    return made


def listed() -> list[str]:
    """The files that ARCHITECTURE.md lists, in order."""
    text = ARCHITECTURE.read_text().split("## A row's way from source to sink", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\d+\. `([^`]+)`", text, re.MULTILINE)


@pytest.fixture
def calls(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """All calls that carried the row, those of the driver and of its tasks."""
    for name, value in (("a", NEEDLE), ("b", "x")):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"k": [1], name: [value]}), tmp_path / name / "part.parquet")
    notes = tmp_path / "notes"
    notes.mkdir()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(epoch, "by_partition", traced(epoch.by_partition, str(notes)))
    found: Calls = []
    threading.setprofile(profiler(found))
    sys.setprofile(profiler(found))
    try:
        query = Session(spark).run(
            "SELECT a.k, a.a, b.b FROM a JOIN b ON a.k = b.k",
            {name: SourceSpec(name, "parquet", str(tmp_path / name)) for name in "ab"},
            checkpoint=str(tmp_path / "state"),
            path=str(tmp_path / "out"),
            processors=1,
        )
        query.awaitTermination()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert query.summary()["results_runtime"] == 1
    for note in sorted(notes.iterdir()):
        found += [tuple(files) for files in json.loads(note.read_text())]
    return found


def test_the_way_of_a_row(calls: Calls) -> None:
    way = listed()
    assert len(way) == len(set(way)) <= MOST_FILES
    started = [files for files in calls if files[0] != "spark/session/session.py"]
    stops = [file for files in started for file in files if not NO_STOP.match(file)]
    opened = [file for files in calls for file in files if file in SET_UP]
    found = list(dict.fromkeys([*opened, *stops]))
    driver = [file for file in found if not file.startswith(TASK)]
    job = driver.index("spark/stream/epoch.py") + 1
    assert driver[:job] + [file for file in found if file.startswith(TASK)] + driver[job:] == way
    # Without going back: no call enters a file again that it came through.
    assert [files for files in started if len(set(files)) < len(files)] == []
