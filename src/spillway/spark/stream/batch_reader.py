"""How a batch of files is read: by tasks where they give what Spark would, else by Spark.

Which inputs tasks can read is decided once, from the plan and Spark's settings (`native_scans`). Which files,
is decided by the footer of each file. So one file that only Spark can read does not slow down the others.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spillway.errors import SourceError
from spillway.manager.files import LISTING_OPTIONS, FileBatch, FileEntry
from spillway.plan.rules import Plan
from spillway.scan import ARROW, PARQUET, ScanInput, Split
from spillway.scan.files import file_splits
from spillway.scan.native import SPARK_SETTINGS, native_inputs
from spillway.spark.sources import NATIVE_FORMATS, FileInput, columns_of, is_plain
from spillway.spark.stream.batch_frames import BatchFrames
from spillway.spark.stream.batch_rows import BatchRows
from spillway.spark.stream.file_rows import FileRows
from spillway.spark.stream.wire import Wire

_LOG = logging.getLogger(__name__)
Scans = tuple[ScanInput | None, ...]
"""Per input of the view how tasks read it; None: Spark does."""


def native_scans(
    spark: SparkSession,
    plan: Plan,
    wire: Wire,
    frames: Mapping[str, DataFrame],
    relations: Sequence[FileInput],
) -> Scans:
    """The inputs that tasks can read themselves."""
    changed = [
        name for name, value in SPARK_SETTINGS.items() if _setting(spark, name, value) != value.lower()
    ]
    if changed:
        _LOG.info("Spark reads all files, because %s is set", changed[0])
        return tuple(None for _ in plan.inputs)
    columns = [columns_of(frames[input_.source]) for input_ in plan.inputs]
    found: list[ScanInput | None] = [None for _ in plan.inputs]
    for number, scan in enumerate(native_inputs(plan, columns, wire.types, wire.graph)):
        reason = _unplain(relations, number, frames[plan.inputs[number].source])
        if isinstance(scan, str) or reason is not None:
            _require_spark(relations, number, reason or str(scan))
            _LOG.info("Spark reads the files of input %s: %s", plan.inputs[number].name, reason or scan)
        else:
            found[number] = scan
    return tuple(found)


def _setting(spark: SparkSession, name: str, default: str) -> str:
    return (spark.conf.get(name, default) or "").lower()


def _unplain(relations: Sequence[FileInput], number: int, frame: DataFrame) -> str | None:
    """Why only Spark can read the files of an input, whatever the view makes of them."""
    relation = next((relation for relation in relations if number in relation.places), None)
    if relation is None or not is_plain(frame):
        return "it is not a plain stream of files"
    if relation.format != PARQUET and relation.format not in NATIVE_FORMATS:
        return f"it has format {relation.format}"
    others = sorted(set(relation.options) - LISTING_OPTIONS)
    return f"it has the option {others[0]}" if others else None


def _require_spark(relations: Sequence[FileInput], number: int, reason: str) -> None:
    """Refuse a source that Spark would have to read, but cannot."""
    relation = next((relation for relation in relations if number in relation.places), None)
    if relation is not None and relation.format in NATIVE_FORMATS:
        raise SourceError(
            f"[sources.{relation.name}] has format {relation.format}, which tasks read without Spark, but "
            f"{reason}; change the view, or read Parquet"
        )


class BatchReader:
    """Makes the rows of batches of one query."""

    def __init__(self, frames: BatchFrames, relations: Sequence[FileInput], scans: Scans, tasks: int) -> None:
        """`tasks` is how many tasks run at a time."""
        self._frames = frames
        self._relations = relations
        self._scans = scans
        self._tasks = tasks

    def rows_of(self, batch: FileBatch) -> BatchRows:
        splits: list[Split] = []
        left: list[tuple[FileEntry, ...]] = []
        for relation, files in zip(self._relations, batch.files, strict=True):
            for_spark = []
            for entry in files:
                found = self._splits(relation, entry)
                if found is None:
                    for_spark.append(entry)
                else:
                    splits += found
            left.append(tuple(for_spark))
        splits.sort(key=lambda split: split.tag)  # rows of one input have one schema
        rest = FileBatch(batch.batch_id, tuple(left)) if any(left) else None
        frame = None if rest is None else lambda: self._frames.frame_of(rest)
        return FileRows(self._scans, splits, self._tasks, frame)

    def frame_of(self, batch: FileBatch) -> DataFrame:
        """The whole batch as Spark would read it."""
        return self._frames.frame_of(batch)

    def _splits(self, relation: FileInput, entry: FileEntry) -> list[Split] | None:
        """The splits of a file for all inputs that read it; None: Spark has to read it."""
        found: list[Split] = []
        for number in relation.places:
            scan = self._scans[number]
            if scan is None or not Path(entry.path).is_absolute():
                return None
            splits = self._file_splits(relation, entry, scan)
            if isinstance(splits, str) and relation.format in NATIVE_FORMATS:
                raise SourceError(f"[sources.{relation.name}] {splits}; write the file again without that")
            if isinstance(splits, str):
                _LOG.info("Spark reads the file: %s", splits)
                return None
            found += splits
        return found

    def _file_splits(self, relation: FileInput, entry: FileEntry, scan: ScanInput) -> tuple[Split, ...] | str:
        if relation.format == "delta":
            return file_splits(entry.path, scan, partitions=entry.partitions)
        if relation.format == ARROW:
            _check_arrow(relation, entry.path)
            return file_splits(entry.path, scan, root=relation.root, format=ARROW)
        return file_splits(entry.path, scan, root=relation.root)


def _check_arrow(relation: FileInput, path: str) -> None:
    """Refuse a file without a column that every file must have; for other formats `SourceCheck` does."""
    try:
        with pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
            stored = {name.lower() for name in file.schema.names}
    except (OSError, pa.ArrowException):
        return  # who reads it reports what is wrong
    lacking = sorted(relation.required - stored)
    if lacking:
        raise SourceError(
            f"[sources.{relation.name}] file {path} has no column {lacking[0]}, which the view reads; write "
            "the file again with the columns of the others, then run the job again"
        )
