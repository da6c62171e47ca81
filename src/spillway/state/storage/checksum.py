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


def crc32(data: Data, start: int = 0) -> int:
    """The CRC-32 of `data`, continuing from `start` (the checksum of what came before)."""
    value = start
    for buffer in buffers(data):
        value = zlib.crc32(buffer, value)
    return value


def buffers(data: Data) -> Sequence[bytes | memoryview | pa.Buffer]:
    """`data` as a sequence of buffers."""
    if isinstance(data, bytes | bytearray | memoryview | pa.Buffer):
        return (data,)
    return data


class SummedFile:
    """A file for writing that knows the size and the checksum of what went through; for `pa.PythonFile`.

    Arrow hands over its buffers as they are: nothing is copied before the file itself gets it.
    """

    closed = False

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self.size = 0
        self.crc32 = 0

    def write(self, data: bytes | pa.Buffer) -> int:
        self.crc32 = crc32(data, self.crc32)
        self._file.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """The file is its owner's to close."""
