"""Comparisons as Spark makes them: numbers in their common type, NaN equal to itself and above every number.

Decimals are compared in their common type too. Where that would need more than 38 digits, Spark rounds both
sides to fewer digits after the point, and so do we.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.types import common_type, promote, spark_type


def compare(operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """`left operator right` row by row, null where either is null; for `<=>` never null."""
    if pa.types.is_nested(left.type) or pa.types.is_nested(right.type):
        raise ViewError(f"comparing {spark_type(left.type)} is not supported; compare its fields")
    left, right = _alike(left, right)
    if operator == "<=>":
        both = pc.and_(left.is_null(), right.is_null())
        return pc.or_(both, pc.fill_null(_equal(left, right), False))
    answers: dict[str, Callable[[], pa.Array]] = {
        "=": lambda: _equal(left, right),
        "<>": lambda: pc.invert(_equal(left, right)),
        "<": lambda: _less(left, right),
        ">": lambda: _less(right, left),
        "<=": lambda: pc.invert(_less(right, left)),
        ">=": lambda: pc.invert(_less(left, right)),
    }
    return answers[operator]()


def extreme(operator: str, values: list[pa.Array]) -> pa.Array:
    """The least (`<`) or greatest (`>`) of `values` row by row; nulls are skipped."""
    best, *others = values
    for value in others:
        better = pc.fill_null(compare(operator, value, best), False)
        best = pc.if_else(pc.or_(best.is_null(), better), value, best)
    return best


def _alike(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    kind = common_type(left.type, right.type)
    if pa.types.is_null(kind):
        kind = pa.bool_()
    return promote(left, kind), promote(right, kind)


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    equal = pc.equal(left, right)
    if not pa.types.is_floating(left.type):
        return equal
    return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _less(left: pa.Array, right: pa.Array) -> pa.Array:
    less = pc.less(left, right)
    if not pa.types.is_floating(left.type):
        return less
    return pc.or_(less, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
