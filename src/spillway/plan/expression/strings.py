"""Functions of strings as Spark computes them: `concat`, `upper`, `lower`, `length`, `LIKE`."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.types import spark_type


def concat(values: list[pa.Array]) -> pa.Array:
    """The strings one after the other; null where one of them is null."""
    parts = [_text(value, "concat") for value in values]
    return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")


def upper(value: pa.Array) -> pa.Array:
    """`upper(value)` with full Unicode case mapping."""
    return _change_case(_text(value, "upper"), pc.ascii_upper, str.upper)


def lower(value: pa.Array) -> pa.Array:
    """`lower(value)` with full Unicode case mapping."""
    return _change_case(_text(value, "lower"), pc.ascii_lower, str.lower)


def length(value: pa.Array) -> pa.Array:
    """Characters of a string, bytes of a binary."""
    if pa.types.is_binary(value.type):
        return pc.binary_length(value)
    return pc.utf8_length(_text(value, "length"))


def like(value: pa.Array, pattern: str) -> pa.Array:
    """`value LIKE pattern`."""
    return pc.match_substring_regex(_text(value, "LIKE"), like_regex(pattern))


def like_regex(pattern: str) -> str:
    """The regular expression of a LIKE pattern with escape character backslash; `%` matches line ends too."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("%", "_", "\\"):
                raise ViewError(f"LIKE {pattern!r}: after a backslash comes %, _ or another backslash")
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return rf"(?s)\A{''.join(parts)}\z"


def _text(value: pa.Array, function: str) -> pa.Array:
    if pa.types.is_null(value.type):
        return value.cast(pa.string())
    if not pa.types.is_string(value.type):
        raise ViewError(f"{function} of {spark_type(value.type)} is not supported; cast it to string")
    return value


def _change_case(
    value: pa.Array, fast: Callable[[pa.Array], pa.Array], full: Callable[[str], str]
) -> pa.Array:
    # Arrow maps one character to one; Java and Python know that the upper case of ß is SS.
    if pc.all(pc.string_is_ascii(value), min_count=0).as_py():
        return fast(value)
    return pa.array([None if text is None else full(text) for text in value.to_pylist()], pa.string())
