"""Rows and messages on their way from one task of an epoch to another, as bytes that describe themselves.

    length of the head (4 bytes) | head (JSON) | zeros up to a multiple of 64 | rows (an Arrow IPC stream)

Invariant: who reads a parcel knows which attempt of which task wrote it. A task that Spark repeats may send
other rows, so an epoch counts only if all its readers read the same attempt of each writer
(`consistent_reports`).
"""

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

SCAN = -1
"""The stage that brings the view's input; the others are numbered from 0."""
NO_OPERATOR = -1
_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Parcel:
    stage: int
    writer: int
    """The number of its task in the stage."""
    attempt: str
    operator: int = NO_OPERATOR
    """The operator that the rows are for."""
    arrived: int = 0
    """How many rows of the view's inputs it has; copies do not count."""
    overflowed: bool = False
    """Whether the writer had more than fits into the parcels that it may send; the epoch is run again."""
    message: str = ""
    """What a processor tells itself about the stages so far."""
    rows: pa.Buffer | None = None

    def encoded(self) -> bytes:
        head = json.dumps(
            [
                self.stage,
                self.writer,
                self.attempt,
                self.operator,
                self.arrived,
                self.overflowed,
                self.message,
            ],
            separators=(",", ":"),
        ).encode()
        padding = -(_LENGTH.size + len(head)) % _ALIGNMENT
        rows = b"" if self.rows is None else memoryview(self.rows)
        return b"".join((_LENGTH.pack(len(head)), head, bytes(padding), rows))

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self.rows is not None:
            with pa.ipc.open_stream(self.rows) as reader:
                yield from reader


def decode_parcel(data: bytes) -> Parcel:
    (length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + length
    stage, writer, attempt, operator, arrived, overflowed, message = json.loads(data[_LENGTH.size : end])
    start = end + -end % _ALIGNMENT
    rows = pa.py_buffer(data)[start:] if start < len(data) else None
    return Parcel(stage, writer, attempt, operator, arrived, overflowed, message, rows)


def encoded_rows(batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    """Batches of one schema, as they are in a parcel."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()
