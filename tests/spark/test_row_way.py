"""One row followed from its source to the sink, call by call: it goes through few files, and never back.

ARCHITECTURE.md lists the files. A call carries the row if an argument or the result holds it: a batch of
Arrow rows with its value, the rows of its batch, or the file of results that is given to the sink.
"""

import dataclasses
import json
import re
import sys
import threading
import time
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
from spillway.spark.stream import epoch, file_rows, scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = f"{Path(spillway.__file__).parent}/"
ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
NEEDLE = "needle"
MOST_FILES = 15
# Not stops of the way: values and storage that every stop uses, what stands in for an API of PySpark, what
# carries rows between tasks, and what the row leaves behind as state. Sources only look at files.
NO_STOP = re.compile(
    r"model/|errors|plan/expression/|state/(rows|storage|memory|orders|log)/|spark/jvm/|scan/scan_input"
    r"|state/join/(search|matches)"
    r"|scan/(files|split|dealing)|spark/stream/(scan|batch_rows|file_rows|batch_reader|input)\b|manager/files/"
    r"|state/graph/(parcel|outgoing|inbox|spool|routing)|spark/worker/native_rows"
    r"|spark/sinks/staging|state/step/(result_files|state_view|run_writer|tally|retention|unwritten)"
    r"|spark/sources/"
)
TASK = ("spark/worker/", "state/", "scan/")
"""What runs in tasks, inside the job of the epoch."""
Calls = list[tuple[str, ...]]
"""The files on the stack of each call that carried the row, outermost first, neighbours once."""


def carries(value: object, depth: int = 4) -> bool:
    if isinstance(value, pa.RecordBatch | pa.Table):
        return any(carries(column) for column in value.columns)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        is_text = pa.types.is_string(value.type) or pa.types.is_large_string(value.type)
        return is_text and NEEDLE in value.to_pylist()
    if type(value).__name__ in ("FileRows", "ResultFile"):
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
    return tuple(reversed(files))


def traced(make: Callable[..., Any], directory: str) -> Callable[..., Any]:
    """What makes a task that notes its calls in a file."""

    def made(*arguments: Any) -> Callable[[int, Iterator[bytes]], Iterator[Any]]:
        task = make(*arguments)

        def run(partition: int, frames: Iterator[bytes]) -> Iterator[Any]:
            calls: Calls = []
            sys.setprofile(profiler(calls))
            sent = list(task(partition, frames))
            sys.setprofile(None)
            Path(directory, f"{time.monotonic_ns()}.json").write_text(json.dumps(calls))
            yield from sent

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
    monkeypatch.setattr(scan, "ScatterTask", traced(scan.ScatterTask, str(notes)))
    monkeypatch.setattr(epoch, "LastStageTask", traced(epoch.LastStageTask, str(notes)))
    monkeypatch.setattr(file_rows, "FEW_ROWS", 0)  # tasks read the files
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
    found = list(dict.fromkeys(file for files in started for file in files if not NO_STOP.match(file)))
    driver = [file for file in found if not file.startswith(TASK)]
    job = driver.index("spark/stream/epoch.py") + 1
    assert driver[:job] + [file for file in found if file.startswith(TASK)] + driver[job:] == way
    # Without going back: no call enters a stop again that it came through.
    stops = [[file for file in files if not NO_STOP.match(file)] for files in started]
    assert [files for files in stops if len(set(files)) < len(files)] == []
