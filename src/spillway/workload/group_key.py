"""Join keys that fall into chosen partition groups of the engine.

The engine groups rows by ranges of Spark's `xxhash64` of the key. For one long column that hash is a
bijection, so it can be run backwards: pick a hash inside partition p's range, take the key that has it.
With as many groups as the workload has partitions, group g is partition g; with a divisor of that number,
whole partitions share a group. So classes and alternating halves are what the engine's policies see, as
in the seeds.

Known limit: holds for a view that joins on `k` alone; below 2^32 values per partition.
"""

import numpy as np
from numpy.typing import NDArray

from spillway.workload.permutation import Words, splitmix64

_PRIME_1 = 0x9E3779B185EBCA87
_PRIME_2 = 0xC2B2AE3D27D4EB4F
_PRIME_3 = 0x165667B19E3779F9
_PRIME_4 = 0x85EBCA77C2B2AE63
_PRIME_5 = 0x27D4EB2F165667C5
_SPARK_SEED = 42  # of `xxhash64` in Spark SQL
_INPUT_BYTES = 8
_START = np.uint64((_SPARK_SEED + _PRIME_5 + _INPUT_BYTES) % 2**64)


def group_keys(partition: Words, value: Words, partitions: int) -> NDArray[np.int64]:
    """One key per (partition, value), all different, whose hash lies in the partition's range."""
    thirty_two = np.uint64(32)
    count = np.uint64(partitions)
    first = _ceil_upper(partition, count)
    width = _ceil_upper(partition + np.uint64(1), count) - first
    upper = first + splitmix64(value) % width
    signed_order = (upper << thirty_two) | value  # 0 stands for the smallest signed hash
    return _unhash(signed_order ^ np.uint64(1 << 63)).view(np.int64)


def partition_of(keys: NDArray[np.int64], partitions: int) -> NDArray[np.int64]:
    """The partition whose range the hash of each key lies in."""
    h = _START ^ (_rotate_right(keys.view(np.uint64) * np.uint64(_PRIME_2), 33) * np.uint64(_PRIME_1))
    h = _rotate_right(h, 37) * np.uint64(_PRIME_1) + np.uint64(_PRIME_4)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(_PRIME_2)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(_PRIME_3)
    h = h ^ (h >> np.uint64(32)) ^ np.uint64(1 << 63)
    return ((h >> np.uint64(32)) * np.uint64(partitions) >> np.uint64(32)).astype(np.int64)


def _ceil_upper(partition: Words, partitions: np.uint64) -> Words:
    return ((partition << np.uint64(32)) + partitions - np.uint64(1)) // partitions


def _unhash(hashed: Words) -> Words:
    """The long whose XXH64 with Spark's seed is `hashed`."""
    h = hashed ^ (hashed >> np.uint64(32))
    h = h * _inverse(_PRIME_3)
    h = h ^ (h >> np.uint64(29)) ^ (h >> np.uint64(58))
    h = h * _inverse(_PRIME_2)
    h = h ^ (h >> np.uint64(33))
    h = (h - np.uint64(_PRIME_4)) * _inverse(_PRIME_1)
    h = _rotate_right(h, 27) ^ _START
    return _rotate_right(h * _inverse(_PRIME_1), 31) * _inverse(_PRIME_2)


def _rotate_right(x: Words, bits: int) -> Words:
    return (x >> np.uint64(bits)) | (x << np.uint64(64 - bits))


def _inverse(odd: int) -> np.uint64:
    return np.uint64(pow(odd, -1, 2**64))
