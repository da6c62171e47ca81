"""The m-way join by its definition, for comparison: no hashes, no state, no vectors.

Slow on purpose and obvious on purpose; tests hold the fast path against it.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product
from typing import Any

Row = dict[str, Any]


def join(
    inputs: Sequence[Sequence[Row]],
    key: Callable[[int, Row], Hashable],
    keep: Callable[[tuple[Row, ...]], bool] | None = None,
) -> Iterator[tuple[Row, ...]]:
    """Every combination of one row per input whose keys are equal and not null, and that `keep` accepts."""
    by_key: list[dict[Hashable, list[Row]]] = []
    for number, rows in enumerate(inputs):
        grouped: dict[Hashable, list[Row]] = {}
        for row in rows:
            value = key(number, row)
            if value is not None:
                grouped.setdefault(value, []).append(row)
        by_key.append(grouped)
    for value in by_key[0]:
        for rows in product(*(grouped.get(value, ()) for grouped in by_key)):
            if keep is None or keep(rows):
                yield rows
