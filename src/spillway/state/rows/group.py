"""The map from key hashes to partition groups.

A group is a range of the signed 64-bit key hash: group(h) = floor((h + 2^63) * groups / 2^64), computed on
the upper 32 bits. So the order by hash is also the order by (group, hash), one sorted array holds all groups
of a processor, and one vectorised binary search probes them all. xxhash64 mixes well, hence equal ranges
hold equal shares of the keys. The same formula is computed in Spark SQL by `GROUP_SQL`.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spillway.model import GroupSet

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
GROUP_SQL = "cast(shiftright((shiftright({hash}, 32) + 2147483648L) * {groups}L, 32) as int)"


def group_of(hashes: Int64Array, groups: int | Int64Array) -> Int64Array:
    return (((hashes >> 32) + (1 << 31)) * groups) >> 32


def group_starts(groups: int) -> Int64Array:
    """The smallest hash of each group; `searchsorted` with it cuts a sorted hash array into groups."""
    upper = -((-(np.arange(groups, dtype=np.int64) << 32)) // groups)  # ceil(g * 2^32 / groups)
    return (upper - (1 << 31)) << 32


def group_offsets(hashes: Int64Array, groups: int) -> Int64Array:
    """Where groups begin in a sorted hash array: group g is [offsets[g], offsets[g + 1])."""
    offsets = np.empty(groups + 1, dtype=np.int64)
    offsets[:-1] = np.searchsorted(hashes, group_starts(groups), side="left")
    offsets[-1] = len(hashes)
    return offsets


def flags(mask: GroupSet, groups: int) -> BoolArray:
    """The set as one boolean per group, for vectorised look-ups."""
    packed = np.frombuffer(mask.to_bytes((groups + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=groups, bitorder="little").astype(np.bool_)


def groups_in(hashes: Int64Array, groups: int) -> GroupSet:
    """The groups that a sorted hash array has rows of."""
    sizes = np.diff(group_offsets(hashes, groups))
    return int.from_bytes(np.packbits(sizes > 0, bitorder="little").tobytes(), "little")


ROTATION = 17


def folded(hashes: Sequence[Int64Array]) -> Int64Array:
    """One hash of several: each is a hash already, so to rotate and to xor mixes enough. See `FOLDED_SQL`."""
    whole = hashes[0].view(np.uint64)
    for number, part in enumerate(hashes[1:], 1):
        turn = np.uint64(ROTATION * number % 64)
        bits = part.view(np.uint64)
        whole = whole ^ (bits << turn | bits >> (np.uint64(64) - turn))
    return whole.view(np.int64)


def folded_sql(hashes: Sequence[str]) -> str:
    """The same in Spark SQL."""
    parts = [hashes[0]]
    for number, part in enumerate(hashes[1:], 1):
        turn = ROTATION * number % 64
        parts.append(f"(shiftleft({part}, {turn}) | shiftrightunsigned({part}, {64 - turn}))")
    return " ^ ".join(parts)


def hash_in_group(group_hashes: Int64Array, key_hashes: Int64Array) -> Int64Array:
    """Hashes of the group of the first and, within it, of the key of the second. See `hash_in_group_sql`."""
    return group_hashes >> 32 << 32 | (key_hashes >> 32) & 0xFFFFFFFF


def hash_in_group_sql(group: str, groups: int, key_hash: str) -> str:
    """The same in Spark SQL, with the smallest hash of a group for the first."""
    start = f"(({group}) * {1 << 32}L + {groups - 1}L) div {groups}L - {1 << 31}L"
    return f"(shiftleft({start}, 32) | shiftrightunsigned({key_hash}, 32))"
