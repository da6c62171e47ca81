"""A filter of hashes: tells of most hashes that a segment does not have them, without a search.

A bit map with eight bits for each row: one byte per row, the size that a column of bytes has. A hash belongs
to the bit at which its lower 32 bits point. Not the upper ones: they are the group, and alike in a segment.

Invariant: the bit of every hash that the filter was made of is set; of other hashes about one in eight has
its bit set too. A lookup takes a fraction of a binary search, and the fraction falls as segments grow.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.state.rows.group import Int64Array

BITS_PER_ROW = 8
MAX_BITS = 1 << 30
"""A product with 32 bits of a hash fits into 64 bits."""
BLOCK_ROWS = 1 << 15
"""Rows that are marked at a time: what that takes besides the bits stays in the processor's cache."""
LEAST_NEEDLES = 256
"""For fewer hashes a lookup takes as long as the binary search that it saves."""
UInt8Array = npt.NDArray[np.uint8]
_BITS = (1 << np.arange(8)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class HashFilter:
    bits: UInt8Array

    @staticmethod
    def of(hashes: Int64Array) -> "HashFilter":
        """The filter of these hashes, one byte for each."""
        marked = np.zeros(BITS_PER_ROW * len(hashes), dtype=np.bool_)
        count = min(MAX_BITS, len(marked))
        for start in range(0, len(hashes), BLOCK_ROWS):
            marked[_bit_of(lower_half(hashes[start : start + BLOCK_ROWS]), count)] = True
        return HashFilter(np.packbits(marked, bitorder="little"))

    def candidates(self, lower: Int64Array) -> Int64Array:
        """The positions of those hashes that may be there; `lower` are their lower halves."""
        bit = _bit_of(lower, min(MAX_BITS, BITS_PER_ROW * len(self.bits)))
        return np.flatnonzero(self.bits.take(bit >> 3) & _BITS.take(bit & 7) != 0)


def lower_half(hashes: Int64Array) -> Int64Array:
    """The part of each hash that filters look at."""
    return hashes & 0xFFFFFFFF


def _bit_of(lower: Int64Array, count: int) -> Int64Array:
    bit = lower * count
    bit >>= 32
    return bit
