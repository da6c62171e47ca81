"""Types of join keys: the common type in which keys are compared, and when comparing hashes is enough.

Spark's xxhash64 of one value of at most 8 bytes is a bijection, so equal hashes mean equal keys and need no
check; for strings, wide decimals and several key parts the keys themselves are compared after a hash match.
Known limit: types are refused if their equality differs from that of their bytes (collated strings) or is
undefined (maps).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spillway.errors import ViewError
from spillway.model import normalise_type

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_FLOATS = ("float", "double")
_ALONE = frozenset({"boolean", "date", "timestamp", "timestamp_ntz", "binary"})
_EIGHT_BYTES = frozenset({*_INTEGERS, *_FLOATS, "boolean", "date", "timestamp", "timestamp_ntz"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT = re.compile(r"string|(?:var)?char\(\d+\)")
_WIDEST = 38


def common_key_type(terms: Sequence[tuple[str, str]]) -> str:
    """The type that compares all of `terms`, which are pairs of a label (`a.k`) and a Spark type."""
    (first_label, first_type), *others = [(label, _key_type(label, text)) for label, text in terms]
    common = first_type
    for label, kind in others:
        wider = _wider(common, kind)
        if wider is None:
            raise ViewError(
                f"key type mismatch: {first_label} is {first_type}, {label} is {kind}; cast one of them"
            )
        common = wider
    return common


def hash_is_exact(types: Sequence[str]) -> bool:
    """Whether equal hashes of keys of these types (one per part) mean equal keys."""
    if len(types) != 1:
        return False
    kind = normalise_type(types[0])
    decimal = _DECIMAL.fullmatch(kind)
    return kind in _EIGHT_BYTES or (decimal is not None and int(decimal[1]) <= 18)


def _key_type(label: str, text: str) -> str:
    kind = normalise_type(text)
    if _TEXT.fullmatch(kind):
        return "string"
    if kind in _ALONE or kind in _INTEGERS or kind in _FLOATS or _DECIMAL.fullmatch(kind):
        return kind
    raise ViewError(
        f"{label} is {kind}, which cannot be a join key; join on a plain value, such as one field of it"
    )


def _wider(left: str, right: str) -> str | None:
    if left == right:
        return left
    if left in _INTEGERS and right in _INTEGERS:
        return max(left, right, key=_INTEGERS.index)
    numeric = [
        kind in _INTEGERS or kind in _FLOATS or _DECIMAL.fullmatch(kind) is not None for kind in (left, right)
    ]
    if not all(numeric):
        return None
    if left in _FLOATS or right in _FLOATS:
        return "double"
    (left_whole, left_scale), (right_whole, right_scale) = _digits(left), _digits(right)
    scale = max(left_scale, right_scale)
    precision = max(left_whole, right_whole) + scale
    return f"decimal({precision},{scale})" if precision <= _WIDEST else None


def _digits(kind: str) -> tuple[int, int]:
    """Digits before and after the point."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return _DIGITS[kind], 0
    return int(decimal[1]) - int(decimal[2]), int(decimal[2])
