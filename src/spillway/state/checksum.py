"""CRC-32 of buffers and of whole files, as manifests and commit rows record it.

Invariant: the checksum of a file equals that of the buffers it was written from, however they were cut.
Known limit: it detects accidents (truncation, bit rot, a half-written copy), not an adversary.
"""

import zlib
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

Data: TypeAlias = bytes | memoryview | pa.Buffer | Sequence[bytes | memoryview | pa.Buffer]
"""What can be written or summed: one buffer, or several in order."""

READ_CHUNK_BYTES = 1 << 20


def crc32(data: Data, start: int = 0) -> int:
    """The CRC-32 of `data`, continuing from `start` (the checksum of what came before)."""
    value = start
    for buffer in buffers(data):
        value = zlib.crc32(buffer, value)
    return value


def file_crc32(file: pa.NativeFile) -> int:
    """The CRC-32 of an open file from its current position to its end, without holding it in memory."""
    value = 0
    while chunk := file.read_buffer(READ_CHUNK_BYTES):
        value = zlib.crc32(chunk, value)
    return value


def buffers(data: Data) -> Sequence[bytes | memoryview | pa.Buffer]:
    """`data` as a sequence of buffers."""
    if isinstance(data, bytes | bytearray | memoryview | pa.Buffer):
        return (data,)
    return data
