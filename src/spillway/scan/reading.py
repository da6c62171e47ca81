"""Reads a split: the needed columns of its row groups, in bounded batches, as wire rows.

A column that the file lacks is null, one in the names of directories is constant, and every array gets the
Arrow type that Spark sends for the declared type. The driver has checked that the file's types fit
(`files`); here a file that vanished, changed its size or cannot be decoded ends the task with an error that
names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spillway.errors import SourceError, file_reason
from spillway.scan.partition_column import partition_value
from spillway.scan.scan_input import ScanColumn, ScanInput
from spillway.scan.split import ARROW, Split

BATCH_ROWS, BATCH_BYTES = 1 << 16, 32 << 20
LEAST_ROWS = 1 << 10
"""Batches are not made smaller than this, however wide the rows are."""
REMEDY = "it is damaged or has another format; write it again under the same name, then run the job again"


def read(
    scan: ScanInput, split: Split, batch_rows: int = BATCH_ROWS, batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """The wire rows of a split; a batch is made of at most `batch_rows` rows of the file, and has some.

    Of wide rows it is made of fewer, so that it has about `batch_bytes`.
    """
    constants = {name.lower(): text for name, text in split.partitions}
    wanted = {column.name.lower() for column in scan.columns} - set(constants)
    for batch in _checked(split, _batches(split, wanted, batch_rows, batch_bytes)):
        arrays = [_array(column, batch, constants, split) for column in scan.columns]
        rows = scan.wire_rows(arrays, batch.num_rows)
        if rows.num_rows:
            yield rows


def unreadable(path: str, error: Exception) -> SourceError:
    """What to say about a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return SourceError(f"file {path} is gone; put it back, then run the job again")
    return SourceError(f"file {path} cannot be read ({file_reason(error).rstrip('.')}): {REMEDY}")


def _checked(split: Split, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; what goes wrong while they are read names the file."""
    while True:
        try:
            batch = next(batches, None)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise unreadable(split.path, error) from error
        if batch is None:
            return
        yield batch


def _batches(split: Split, wanted: set[str], batch_rows: int, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    size = Path(split.path).stat().st_size
    if size != split.file_bytes:
        raise ValueError(f"it has {size} bytes now, and had {split.file_bytes} when it was found")
    if split.format == ARROW:
        yield from _arrow_batches(split, wanted, batch_rows)
        return
    # INT96 has nanoseconds, of which Spark keeps microseconds too.
    with pq.ParquetFile(
        split.path, memory_map=True, pre_buffer=False, coerce_int96_timestamp_unit="us"
    ) as file:
        names = [name for name in file.schema_arrow.names if name.lower() in wanted]
        if not names:
            yield from _rows_only(split.rows, batch_rows)
            return
        batch_rows = min(batch_rows, _fitting(file.metadata, split, set(names), batch_bytes))
        yield from file.iter_batches(batch_rows, list(split.groups), names, use_threads=False)


def _fitting(metadata: pq.FileMetaData, split: Split, names: set[str], batch_bytes: int) -> int:
    """How many rows of these columns, by what the file says of their size, have this many bytes together."""
    size = rows = 0
    for number in split.groups:
        group = metadata.row_group(number)
        chunks = (group.column(column) for column in range(group.num_columns))
        size += sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.split(".")[0] in names)
        rows += group.num_rows
    return max(LEAST_ROWS, batch_bytes * rows // max(1, size))


def _arrow_batches(split: Split, wanted: set[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(split.path) as source, pa.ipc.open_file(source) as file:
        numbers = [n for n, name in enumerate(file.schema.names) if name.lower() in wanted]
    if not numbers:
        yield from _rows_only(split.rows, batch_rows)
        return
    options = pa.ipc.IpcReadOptions(included_fields=numbers, use_threads=False)
    with pa.memory_map(split.path) as source, pa.ipc.open_file(source, options=options) as file:
        for group in split.groups:
            batch = file.get_batch(group)
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)


def _rows_only(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of which only the number of rows matters."""
    for start in range(0, rows, batch_rows):
        yield pa.record_batch({"": pa.nulls(min(batch_rows, rows - start))})


def _array(
    column: ScanColumn, batch: pa.RecordBatch, constants: dict[str, str | None], split: Split
) -> pa.Array:
    """The values of a column in the type that Spark sends for it."""
    name, kind = column.name.lower(), column.arrow
    if name in constants:
        value = partition_value(constants[name], column.type)
        return (
            pa.nulls(batch.num_rows, kind)
            if value is None
            else pa.repeat(pa.scalar(value, kind), batch.num_rows)
        )
    stored = next((n for n, own in enumerate(batch.schema.names) if own.lower() == name), None)
    if stored is None:
        return pa.nulls(batch.num_rows, kind)
    try:
        return _in_type(batch.column(stored), kind)
    except pa.ArrowException as error:
        raise unreadable(split.path, ValueError(f"column {column.name}: {error}")) from error


def _in_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Other forms of the same values: text in large arrays or dictionaries, instants in other units."""
    if values.type == kind:
        return values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return pc.cast(values, kind)
