"""The shape of a Parquet file by its footer, or why it is left to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.scan import ScanColumn
from spillway.scan.files.parquet_types import parquet_type
from spillway.scan.files.pruning import Bounds
from spillway.scan.files.shape import FileShape, GroupShape, LeftToSparkError
from spillway.scan.reading import unreadable

_ENCRYPTED = b"PARE"
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"})
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_CALENDAR = frozenset({"date", "timestamp", "timestamp_ntz"})
_BOUNDED = frozenset({"tinyint", "smallint", "int", "bigint", "string"})


def parquet_shape(path: str, columns: Sequence[ScanColumn]) -> FileShape:
    """The shape of the file at `path`, of which these columns are read."""
    try:
        size = Path(path).stat().st_size
        if not size:
            return FileShape(0, ())  # to Spark a file without rows
        footer = pq.read_metadata(path, memory_map=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        if _is_encrypted(path):
            raise LeftToSparkError(f"{path} is encrypted") from None
        raise unreadable(path, error) from error
    places = _places(path, footer, columns)
    if any(column.type in _CALENDAR for column in columns):
        has_int96 = any(footer.schema.column(place).physical_type == "INT96" for place, _ in places)
        _check_calendar(path, footer.metadata or {}, b"3.1" if has_int96 else b"3")
    groups = tuple(_group(path, footer.row_group(n), places) for n in range(footer.num_row_groups))
    missing = {column.name.lower() for column in columns} - {column.name.lower() for _, column in places}
    return FileShape(size, groups, frozenset(missing))


def _is_encrypted(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_ENCRYPTED)) == _ENCRYPTED
    except OSError:
        return False  # the error of the first attempt is told


def _places(path: str, footer: Any, columns: Sequence[ScanColumn]) -> list[tuple[int, ScanColumn]]:
    """Where in the file each column is that it has; one that it has in another form is left to Spark."""
    found: dict[str, list[int]] = {}
    for place in range(footer.num_columns):
        found.setdefault(footer.schema.column(place).path.partition(".")[0].lower(), []).append(place)
    places = []
    for column in columns:
        name = column.name.lower()
        if "." in name:
            raise LeftToSparkError(f"the name of column {column.name} has a dot")
        if len(own := found.get(name, [])) > 1:
            raise LeftToSparkError(f"{path} has {column.name} more than once, or nested")
        if own:
            stored = footer.schema.column(own[0])
            kind = parquet_type(stored) if stored.path == stored.name else None
            if kind != column.type:
                form = kind or f"a form ({stored.physical_type} {stored.logical_type}) that only Spark reads"
                raise LeftToSparkError(f"{path} has {column.name} as {form}, not as {column.type}")
            places.append((own[0], column))
    return places


def _check_calendar(path: str, notes: dict[bytes, bytes], least: bytes) -> None:
    """Files of a Spark before this version, or written in its calendar, have other days before 1582."""
    version = notes.get(_SPARK_VERSION)
    if any(key in notes for key in _LEGACY) or (version is not None and version < least):
        raise LeftToSparkError(f"{path} has dates in the calendar of Spark 2")


def _group(path: str, group: Any, places: Sequence[tuple[int, ScanColumn]]) -> GroupShape:
    size, bounds = 0, {}
    for place, column in places:
        chunk = group.column(place)
        if chunk.compression not in _CODECS:
            raise LeftToSparkError(f"{path} is compressed with {chunk.compression}")
        size += chunk.total_uncompressed_size
        bounds[column.name.lower()] = _bounds(chunk, column.type)
    return GroupShape(group.num_rows, size, bounds)


def _bounds(chunk: Any, type_: str) -> Bounds:
    statistics = chunk.statistics
    if statistics is None:
        return Bounds()
    nulls = statistics.null_count if statistics.has_null_count else None
    if type_ not in _BOUNDED or not statistics.has_min_max:
        return Bounds(nulls=nulls)
    try:
        return Bounds(statistics.min, statistics.max, nulls)
    except UnicodeDecodeError:
        return Bounds(nulls=nulls)  # text that is not UTF-8 has no order that we know
