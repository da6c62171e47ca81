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

PAGE_BYTES = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2

RowRange = tuple[int, int]


def punch(path: str, ranges: Sequence[RowRange], *, keep_columns: int) -> None:
    """Free the pages of these rows of an Arrow IPC file of one batch; its first columns are kept whole."""
    source = pa.memory_map(path)
    whole = source.read_buffer()
    batch = pa.ipc.open_file(source).get_batch(0)
    libc = ctypes.CDLL(None, use_errno=True)  # to look for the library by name starts a program
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        for column in batch.columns[keep_columns:]:
            for start, stop in _extents(column, ranges):
                offset = start - whole.address
                first = -(-offset // PAGE_BYTES) * PAGE_BYTES
                length = (offset + stop - start) // PAGE_BYTES * PAGE_BYTES - first
                if length > 0:
                    _fallocate(libc, descriptor, first, length, path)
    finally:
        os.close(descriptor)


def _fallocate(libc: ctypes.CDLL, descriptor: int, offset: int, length: int, path: str) -> None:
    mode = _KEEP_SIZE | _PUNCH_HOLE
    if libc.fallocate(descriptor, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot free memory of {path}: {os.strerror(number)}")


def _extents(column: pa.Array, ranges: Sequence[RowRange]) -> Iterator[tuple[int, int]]:
    """Addresses of the values of the rows, as half-open intervals."""
    kind = column.type
    buffers = column.buffers()
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = np.frombuffer(buffers[1], dtype=np.int32)
        for start, stop in ranges:
            yield buffers[1].address + 4 * (start + 1), buffers[1].address + 4 * stop
            if buffers[2] is not None:
                yield buffers[2].address + int(offsets[start]), buffers[2].address + int(offsets[stop])
    elif pa.types.is_primitive(kind) and not pa.types.is_boolean(kind):
        width = kind.bit_width // 8
        for start, stop in ranges:
            yield buffers[1].address + width * start, buffers[1].address + width * stop


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
