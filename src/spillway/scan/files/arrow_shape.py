"""The shape of an Arrow IPC file, or why it cannot be read. Spark has no reader for such files.

Known limit: the file format only, not the stream format; bytes are the file's, in proportion to rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from spillway.plan.expression import spark_type
from spillway.scan import ScanColumn
from spillway.scan.files.shape import FileShape, GroupShape, LeftToSparkError
from spillway.scan.reading import unreadable

_EXACT_UNITS = frozenset({"s", "ms", "us"})


def arrow_shape(path: str, columns: Sequence[ScanColumn]) -> FileShape:
    """The shape of the file at `path`, of which these columns are read."""
    try:
        size = Path(path).stat().st_size
        with pa.memory_map(path) as source:
            with pa.ipc.open_file(source) as file:
                schema = file.schema
            # One column is enough to learn how many rows a batch has.
            options = pa.ipc.IpcReadOptions(included_fields=[0] if len(schema) else None, use_threads=False)
            with pa.ipc.open_file(source, options=options) as file:
                rows = [file.get_batch(n).num_rows for n in range(file.num_record_batches)]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    whole = max(1, sum(rows))
    groups = tuple(GroupShape(count, size * count // whole) for count in rows)
    return FileShape(size, groups, _missing(path, schema, columns))


def _missing(path: str, schema: pa.Schema, columns: Sequence[ScanColumn]) -> frozenset[str]:
    """The columns that the file lacks; one that it has in another form is refused."""
    found: dict[str, list[pa.DataType]] = {}
    for field in schema:
        found.setdefault(field.name.lower(), []).append(field.type)
    for column in columns:
        types = found.get(column.name.lower(), [])
        if len(types) > 1:
            raise LeftToSparkError(f"{path} has {column.name} more than once")
        if types and _type(types[0]) != column.type:
            raise LeftToSparkError(f"{path} has {column.name} as {types[0]}, not as {column.type}")
    return frozenset(column.name.lower() for column in columns) - found.keys()


def _type(kind: pa.DataType) -> str | None:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind) and kind.unit not in _EXACT_UNITS:
        return None
    return spark_type(kind)
