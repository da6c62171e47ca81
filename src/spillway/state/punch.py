"""Gives the memory of some rows of a mapped Arrow batch back to the operating system, without a rewrite.

The pages that lie wholly inside the values of those rows are punched out of the file and read as zeros from
then on. Pages shared with rows that stay are kept, as are validity bits, packed booleans and nested columns:
little against the values, and gone with the next merge. The rows that stay are not touched.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from spillway.state.group import Int64Array

PAGE_BYTES = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

RowRange = tuple[int, int]


def punch(path: str, address: int, columns: pa.RecordBatch, ranges: Sequence[RowRange]) -> None:
    """Free the pages of these rows of the columns, which are mapped from a file that starts at `address`."""
    libc = ctypes.CDLL(None, use_errno=True)  # to look for the library by name starts a program
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        rows = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        for starts, stops in _extents(columns, rows[:, 0], rows[:, 1]):
            first = -((address - starts) // PAGE_BYTES) * PAGE_BYTES
            lengths = (stops - address) // PAGE_BYTES * PAGE_BYTES - first
            for number in np.flatnonzero(lengths > 0):
                _fallocate(libc, descriptor, int(first[number]), int(lengths[number]), path)
    finally:
        os.close(descriptor)


def _fallocate(libc: ctypes.CDLL, descriptor: int, offset: int, length: int, path: str) -> None:
    mode = _KEEP_SIZE | _PUNCH_HOLE
    if libc.fallocate(descriptor, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot free memory of {path}: {os.strerror(number)}")


def _extents(
    columns: pa.RecordBatch, starts: Int64Array, stops: Int64Array
) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Addresses of the values of the rows, as half-open intervals, for each buffer that has some."""
    for column in columns.columns:
        kind = column.type
        buffers = column.buffers()
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            base = buffers[1].address
            yield base + 4 * (starts + 1), base + 4 * stops
            if buffers[2] is not None:
                offsets, base = np.frombuffer(buffers[1], dtype=np.int32), buffers[2].address
                yield base + offsets[starts].astype(np.int64), base + offsets[stops].astype(np.int64)
        elif pa.types.is_primitive(kind) and not pa.types.is_boolean(kind):
            base, width = buffers[1].address, kind.bit_width // 8
            yield base + width * starts, base + width * stops


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
