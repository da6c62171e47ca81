"""The root of a stream's randomness: its seed and its name, nothing else.

By name and not by position, so a stream generated alone equals the same stream generated among others.
"""

from hashlib import blake2b

import numpy as np

from spillway.workload.permutation import Words, combine


def stream_key(seed: int, stream: str) -> Words:
    """One word that differs between seeds and between streams."""
    name = int.from_bytes(blake2b(stream.encode(), digest_size=8).digest(), "little")
    return combine(np.array([seed], dtype=np.uint64), np.array([name], dtype=np.uint64))
