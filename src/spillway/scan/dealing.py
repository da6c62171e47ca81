"""Deals splits to tasks so that all have about the same number of bytes.

The largest split goes first, each to the task that has the least (LPT rule: at most 4/3 of the best maximum).
The same splits give the same deal, so a repeated epoch reads the same rows in the same tasks.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from spillway.scan.split import Split


def deal(splits: Sequence[Split], tasks: int) -> list[list[Split]]:
    """The splits of each task, in the order in which they were given; some tasks may have none.

    A row group is never cut. Neighbouring row groups of one file and one input become one split.
    """
    loads = [(0, task) for task in range(tasks)]
    dealt: list[list[int]] = [[] for _ in range(tasks)]
    for number in sorted(range(len(splits)), key=lambda number: (-splits[number].bytes, number)):
        load, task = heapq.heappop(loads)
        dealt[task].append(number)
        heapq.heappush(loads, (load + splits[number].bytes, task))
    return [_joined([splits[number] for number in sorted(numbers)]) for numbers in dealt]


def _joined(splits: Sequence[Split]) -> list[Split]:
    return [
        _whole(list(of_file))
        for _, of_file in groupby(splits, lambda split: (split.tag, split.path, split.partitions))
    ]


def _whole(parts: Sequence[Split]) -> Split:
    return replace(
        parts[0],
        groups=tuple(group for part in parts for group in part.groups),
        rows=sum(part.rows for part in parts),
        bytes=sum(part.bytes for part in parts),
    )
