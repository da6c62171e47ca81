"""Strings of a fixed width, written directly into an Arrow buffer.

Hexadecimal digits of hashed words: hard to compress for text (4 bits per byte), and cheap: one table look-up
per two bytes. Known limit: one array holds at most 2 GiB of text, as Arrow's `string` does.
"""

import numpy as np
import pyarrow as pa

from spillway.errors import SourceError
from spillway.workload.permutation import Words, combine

_WORD_DIGITS = 16
_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_PAIRS = np.stack((np.repeat(_DIGITS, 16), np.tile(_DIGITS, 16)), axis=1)


def payload(key: Words, width_bytes: int) -> "pa.StringArray":
    """One string of `width_bytes` characters per key."""
    count = len(key)
    if count * width_bytes >= 2**31:
        raise SourceError(
            f"workload: {count} rows of {width_bytes} bytes exceed an Arrow array (2 GiB); read less at once"
        )
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width_bytes)
    words = -(-width_bytes // _WORD_DIGITS)
    hashed = combine(key[:, None], np.arange(words, dtype=np.uint64)[None, :])
    text = _PAIRS[hashed.astype("<u8", copy=False).view(np.uint8)]
    text = np.ascontiguousarray(text.reshape(count, words * _WORD_DIGITS)[:, :width_bytes])
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
