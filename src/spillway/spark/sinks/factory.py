"""Opens a sink by its format's name, as the job file and the Python API give it.

Invariant: a wrong format, a missing path or an unknown option is refused before anything is created.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from spillway.errors import SinkError
from spillway.job import SINK_FORMATS
from spillway.spark.sinks.console import ConsoleSink
from spillway.spark.sinks.count import CountSink
from spillway.spark.sinks.delta import DeltaSink
from spillway.spark.sinks.frame_reader import FrameReader
from spillway.spark.sinks.function import FunctionSink
from spillway.spark.sinks.memory import MemorySink
from spillway.spark.sinks.parquet import ParquetSink
from spillway.spark.sinks.sink import Sink
from spillway.state.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = (*SINK_FORMATS, "function")
CHECKPOINT_SUBDIRECTORY = "sink"
DEFAULT_VIEW_NAME = "results"


def open_sink(
    format: str,  # noqa: A002 - the name Spark's users know
    path: str | None = None,
    options: Mapping[str, str] | None = None,
    *,
    checkpoint_dir: str,
    spark: SparkSession | None = None,
    function: Callable[[DataFrame, int], object] | None = None,
) -> Sink:
    """The sink of that format; it touches nothing before `prepare`.

    Options: delta takes `delta.*` table properties and, for a URI, storage options of deltalake; console
    takes `numRows` and `truncate` (characters, or "false"); memory takes `name`, the temporary view's.
    """
    given = dict(options or {})
    if format not in FORMATS:
        raise SinkError(f"unknown sink format {format!r}; formats are {', '.join(FORMATS)}")
    if format in ("delta", "parquet"):
        if not path:
            raise SinkError(f'sink format {format!r} needs a path; add path = "..."')
        return _delta(Storage(path), given) if format == "delta" else _parquet(Storage(path), given)
    if path:
        raise SinkError(f"sink format {format!r} takes no path, but got {path!r}; remove it")
    storage = Storage(Storage(checkpoint_dir).uri(CHECKPOINT_SUBDIRECTORY))
    if format == "console":
        return _console(storage, given)
    if format == "count":
        _refuse_unknown(format, given, ())
        return CountSink(storage)
    if spark is None:
        raise SinkError(f"sink format {format!r} needs a Spark session; pass one")
    if format == "memory":
        _refuse_unknown(format, given, ("name",))
        name = given.get("name", DEFAULT_VIEW_NAME)
        return MemorySink(ParquetSink(storage), FrameReader(spark, storage), name=name)
    _refuse_unknown(format, given, ())
    if function is None:
        raise SinkError(
            "sink format 'function' needs a function of a DataFrame and a sequence number; use the API"
        )
    return FunctionSink(storage, FrameReader(spark, storage), function)


def _delta(storage: Storage, options: Mapping[str, str]) -> Sink:
    properties = {key: value for key, value in options.items() if key.startswith("delta.")}
    rest = {key: value for key, value in options.items() if key not in properties}
    if storage.is_local:
        _refuse_unknown("delta", rest, ("delta.*",))
    return DeltaSink(storage, properties=properties, storage_options=rest)


def _parquet(storage: Storage, options: Mapping[str, str]) -> Sink:
    _refuse_unknown("parquet", options, ())
    return ParquetSink(storage)


def _console(storage: Storage, options: Mapping[str, str]) -> Sink:
    _refuse_unknown("console", options, ("numRows", "truncate"))
    truncate = str(options.get("truncate", "20")).lower()
    cell_characters = (
        None if truncate == "false" else 20 if truncate == "true" else _number("truncate", truncate)
    )
    shown_rows = _number("numRows", str(options.get("numRows", "20")))
    return ConsoleSink(storage, shown_rows=shown_rows, cell_characters=cell_characters)


def _number(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise SinkError(f"sink option {option} = {text!r} is not a whole number above zero")
    return int(text)


def _refuse_unknown(sink_format: str, options: Mapping[str, str], known: Collection[str]) -> None:
    unknown = sorted(set(options) - set(known))
    if unknown:
        allowed = ", ".join(known) if known else "none"
        raise SinkError(f"sink format {sink_format!r} has no option {unknown[0]!r}; its options: {allowed}")
