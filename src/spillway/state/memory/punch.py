"""Gives the memory of some rows of a mapped Arrow batch back to the operating system, without a rewrite.

The pages that lie wholly inside the values of those rows are punched out of the file and read as zeros from
then on: values, offsets and validity bits of every column, also of those inside lists, maps and structs.
Pages shared with rows that stay are kept, and the rows that stay are not touched.

Known limit: columns with views, unions or run-end encoding in them are kept, and so are dictionaries. State
never has them; and what punching frees is known before, so that an image can be rewritten instead.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types

from spillway.state.rows import Int64Array

PAGE_BYTES = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

RowRange = tuple[int, int]
_Extents = Iterator[tuple[Int64Array, Int64Array]]


@dataclass(frozen=True, slots=True)
class Holes:
    """Whole pages of a file that hold nothing but values of some rows."""

    offsets: Int64Array
    lengths: Int64Array

    @property
    def bytes(self) -> int:
        return int(self.lengths.sum())

    def punch(self, path: str) -> None:
        """Give the pages back."""
        libc = ctypes.CDLL(None, use_errno=True)  # to look for the library by name starts a program
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            for offset, length in zip(self.offsets.tolist(), self.lengths.tolist(), strict=True):
                _fallocate(libc, descriptor, offset, length, path)
        finally:
            os.close(descriptor)


def holes_of(address: int, columns: pa.RecordBatch, ranges: Sequence[RowRange]) -> Holes:
    """The pages of these rows of the columns, which are mapped from a file that starts at `address`.

    The columns are whole, as they were read: no slices of larger ones.
    """
    rows = np.array(ranges, dtype=np.int64).reshape(-1, 2)
    offsets, lengths = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for column in columns.columns:
        if not _is_known(column.type):
            continue
        buffers = iter(column.buffers())
        for starts, stops in _extents(column.type, buffers, rows[:, 0], rows[:, 1]):
            first = -((address - starts) // PAGE_BYTES) * PAGE_BYTES
            size = (stops - address) // PAGE_BYTES * PAGE_BYTES - first
            offsets.append(first[size > 0])
            lengths.append(size[size > 0])
    return Holes(np.concatenate(offsets), np.concatenate(lengths))


def _fallocate(libc: ctypes.CDLL, descriptor: int, offset: int, length: int, path: str) -> None:
    mode = _KEEP_SIZE | _PUNCH_HOLE
    if libc.fallocate(descriptor, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot free memory of {path}: {os.strerror(number)}")


def _extents(
    kind: pa.DataType, buffers: Iterator[pa.Buffer | None], starts: Int64Array, stops: Int64Array
) -> _Extents:
    """Addresses of the values of the rows, as half-open intervals, for each buffer that has some.

    `buffers` are those of the column and, after them, those of the columns inside it.
    """
    yield from _bits(next(buffers), starts, stops)
    if types.is_struct(kind):
        for field in kind:
            yield from _extents(field.type, buffers, starts, stops)
    elif types.is_fixed_size_list(kind):
        size = kind.list_size
        yield from _extents(kind.value_type, buffers, starts * size, stops * size)
    elif _is_list(kind):
        offsets = _offsets(next(buffers), large=types.is_large_list(kind))
        yield from _inner_offsets(offsets, starts, stops)
        yield from _extents(kind.field(0).type, buffers, *_bounds(offsets, starts, stops))
    elif _is_text(kind):
        offsets = _offsets(next(buffers), large=types.is_large_string(kind) or types.is_large_binary(kind))
        yield from _inner_offsets(offsets, starts, stops)
        yield from _values(next(buffers), 1, *_bounds(offsets, starts, stops))
    elif types.is_boolean(kind):
        yield from _bits(next(buffers), starts, stops)
    elif not types.is_null(kind):
        yield from _values(next(buffers), kind.bit_width // 8, starts, stops)


def _is_known(kind: pa.DataType) -> bool:
    """Whether `_extents` knows the layout of a type and of all types inside it."""
    if types.is_struct(kind) or types.is_fixed_size_list(kind) or _is_list(kind):
        return all(_is_known(kind.field(number).type) for number in range(kind.num_fields))
    fixed = types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind)
    return bool(fixed or _is_text(kind) or types.is_null(kind) or types.is_dictionary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind))


def _is_text(kind: pa.DataType) -> bool:
    small = types.is_string(kind) or types.is_binary(kind)
    return bool(small or types.is_large_string(kind) or types.is_large_binary(kind))


def _offsets(buffer: pa.Buffer | None, *, large: bool) -> np.typing.NDArray[np.signedinteger]:
    """Where the values of each row begin. None are stored for a column without rows."""
    kind = np.int64 if large else np.int32
    return np.zeros(1, kind) if buffer is None or not buffer.size else np.frombuffer(buffer, dtype=kind)


def _bounds(
    offsets: np.typing.NDArray[np.signedinteger], starts: Int64Array, stops: Int64Array
) -> tuple[Int64Array, Int64Array]:
    return offsets[starts].astype(np.int64), offsets[stops].astype(np.int64)


def _inner_offsets(
    offsets: np.typing.NDArray[np.signedinteger], starts: Int64Array, stops: Int64Array
) -> _Extents:
    """The offsets between the values of the rows; the first and the last are also their neighbours'."""
    base = offsets.ctypes.data
    yield base + offsets.itemsize * (starts + 1), base + offsets.itemsize * stops


def _values(buffer: pa.Buffer | None, width: int, starts: Int64Array, stops: Int64Array) -> _Extents:
    if buffer is not None:
        yield buffer.address + width * starts, buffer.address + width * stops


def _bits(buffer: pa.Buffer | None, starts: Int64Array, stops: Int64Array) -> _Extents:
    """Bytes all of whose bits belong to the rows."""
    yield from _values(buffer, 1, -(-starts // 8), stops // 8)


def dead_ranges(offsets: Sequence[int], dead: Sequence[int]) -> list[RowRange]:
    """The row ranges of the dead groups, neighbours joined; `offsets` cut the rows into groups."""
    ranges: list[RowRange] = []
    for group in dead:
        start, stop = int(offsets[group]), int(offsets[group + 1])
        if start == stop:
            continue
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], stop)
        else:
            ranges.append((start, stop))
    return ranges
