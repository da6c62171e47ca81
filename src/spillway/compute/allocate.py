"""Processors for segments that run side by side, in proportion to what they build (dissertation, 3.2).

Every segment gets one, and each further processor goes to the segment that builds most per processor, so that
all are given out and a larger segment never has fewer. If there are fewer processors than segments, segments
share them, and the shares add up to more than there are.
"""

from __future__ import annotations

from collections.abc import Sequence


def allocate(sizes: Sequence[float], processors: int) -> list[int]:
    """How many of `processors` each of the segments with these building sizes gets."""
    shares = [1] * len(sizes)
    for _ in range(processors - len(sizes) if sizes else 0):
        neediest = max(range(len(sizes)), key=lambda number: (sizes[number] / shares[number], -number))
        shares[neediest] += 1
    return shares
