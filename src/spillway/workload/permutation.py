"""Counter-based randomness: hashes and permutations of one position at a time, vectorised.

`permute` maps [0, size) onto itself under a key without a table, so position i of a shuffle is known
without the positions before it. It mixes on the next power of two (every step is a bijection there) and
walks on while the result falls outside (Black and Rogaway's cycle walking), which takes less than two
rounds on average. Known limit: mixes well enough for test data, not for cryptography; sizes up to 2^62.

A stream's randomness depends on its seed and its name only. The name, not the position, counts, so a stream
that is generated alone equals the same stream among others.
"""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(1)
_MIXING_ROUNDS = 6  # with fewer, places in shuffles of ten or less fail a chi-square test


def splitmix64(x: Words) -> Words:
    """Steele, Lea and Flood's 64-bit generator, as a hash of its counter."""
    z = x + _STEP
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def combine(key: Words, *parts: Words) -> Words:
    """Derive a key from a key and further coordinates; their order matters."""
    for part in parts:
        key = splitmix64(key ^ splitmix64(part))
    return key


def unit(x: Words) -> NDArray[np.float64]:
    """Hashes as numbers in [0, 1)."""
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permute(position: Words, size: Words, key: Words) -> Words:
    """The image of each position under the permutation of [0, size) that its key selects."""
    position, size, key = np.broadcast_arrays(position, size, key)
    mask = size - _ONE
    for shift in (1, 2, 4, 8, 16, 32):
        mask = mask | (mask >> np.uint64(shift))
    half_bits = (np.bitwise_count(mask).astype(np.uint64) + _ONE) >> _ONE
    half_bits = np.maximum(half_bits, _ONE)
    words = np.stack([splitmix64(key + np.uint64(step)) for step in range(_MIXING_ROUNDS)])
    image = _mix(position, mask, half_bits, words)
    outside = np.flatnonzero(image >= size)
    while outside.size:
        image[outside] = _mix(image[outside], mask[outside], half_bits[outside], words[:, outside])
        outside = outside[image[outside] >= size[outside]]
    return image


def _mix(x: Words, mask: Words, half_bits: Words, words: Words) -> Words:
    for word in words:
        x = (x + word) & mask
        x = (x * ((word >> np.uint64(32)) | _ONE)) & mask
        x = x ^ (x >> half_bits)
    return x


def stream_key(seed: int, stream: str) -> Words:
    """One word that differs between seeds and between streams."""
    name = int.from_bytes(blake2b(stream.encode(), digest_size=8).digest(), "little")
    return combine(np.array([seed], dtype=np.uint64), np.array([name], dtype=np.uint64))
