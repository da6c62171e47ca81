"""A signed delta: an Arrow table of rows with an integer weight; bag semantics, no key needed.

An insert weighs +1, a delete -1, an update is both. Rows may be equal; their weights add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from spillway.model import Column
from spillway.plan.expression import arrow_type

WEIGHT = "weight"


def column_names(columns: Sequence[Column]) -> list[str]:
    """`c0`, `c1`, ...: the columns of one source by position."""
    return [f"c{place}" for place in range(len(columns))]


@lru_cache(maxsize=256)
def row_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Rows of a source, without a weight."""
    types = [arrow_type(column.type) for column in columns]
    return pa.schema(list(zip(column_names(columns), types, strict=True)))


@lru_cache(maxsize=256)
def delta_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Rows of a source with their weight, which comes last."""
    return row_schema(columns).append(pa.field(WEIGHT, pa.int64()))
