"""Functions of strings as Spark computes them. Positions and lengths count characters.

Known limit: only the first argument of `substring`, `replace`, `trim`, `lpad` and the like is a column; the
others are constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.types import spark_type

_LONGEST_PAD = 1_000


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


def concat_ws(separator: pa.Array, *values: pa.Array) -> pa.Array:
    """The strings that are not null, with the separator between them; null only if the separator is."""
    separator = _text(separator, "concat_ws")
    joined = pa.nulls(len(separator), pa.string())
    for value in values:
        part = _text(value, "concat_ws")
        joined = pc.coalesce(pc.binary_join_element_wise(joined, part, separator), joined, part)
    return pc.if_else(separator.is_valid(), pc.fill_null(joined, ""), separator)


def substring(value: pa.Array, position: int, length: int | None = None) -> pa.Array:
    """Characters from `position` on: 1 is the first, so is 0, and -1 the last."""
    value = _text(value, "substring")
    start = position - 1 if position > 0 else position
    end = None if length is None else start + length
    if length is not None and length <= 0:
        start, end = 0, 0
    if end is not None and start < 0 <= end:
        end = None
    return pc.utf8_slice_codeunits(value, start, end)


def replace(value: pa.Array, search: str, by: str = "") -> pa.Array:
    """Every occurrence of `search` replaced; an empty one occurs nowhere."""
    value = _text(value, "replace")
    return pc.replace_substring(value, search, by) if search else value


def trim(value: pa.Array, characters: str = " ") -> pa.Array:
    """Without such characters at both ends."""
    return pc.utf8_trim(_text(value, "trim"), characters)


def left_trim(value: pa.Array, characters: str = " ") -> pa.Array:
    """Without such characters at the start."""
    return pc.utf8_ltrim(_text(value, "ltrim"), characters)


def right_trim(value: pa.Array, characters: str = " ") -> pa.Array:
    """Without such characters at the end."""
    return pc.utf8_rtrim(_text(value, "rtrim"), characters)


def left_pad(value: pa.Array, length: int, pad: str = " ") -> pa.Array:
    """At most `length` characters, filled up at the start."""
    kept, padding = _padding(_text(value, "lpad"), length, pad)
    return pc.binary_join_element_wise(padding, kept, "")


def right_pad(value: pa.Array, length: int, pad: str = " ") -> pa.Array:
    """At most `length` characters, filled up at the end."""
    kept, padding = _padding(_text(value, "rpad"), length, pad)
    return pc.binary_join_element_wise(kept, padding, "")


def _padding(value: pa.Array, length: int, pad: str) -> tuple[pa.Array, pa.Array]:
    """The first `length` characters, and what fills each of them up."""
    if length > _LONGEST_PAD:
        raise ViewError(
            f"lpad and rpad to {length} characters are not supported; {_LONGEST_PAD} are the most"
        )
    length = max(length, 0)
    kept = pc.utf8_slice_codeunits(value, 0, length)
    if not pad:
        return kept, pc.utf8_slice_codeunits(value, 0, 0)
    fillings = pa.array([(pad * length)[:count] for count in range(length + 1)], pa.string())
    return kept, fillings.take(pc.subtract(length, pc.utf8_length(kept)))


def like(value: pa.Array, pattern: str, escape: str = "\\") -> pa.Array:
    """`value LIKE pattern ESCAPE escape`."""
    return pc.match_substring_regex(_text(value, "LIKE"), like_regex(pattern, escape))


def like_regex(pattern: str, escape: str = "\\") -> str:
    """The regular expression of a LIKE pattern; `%` matches line ends too."""
    if len(escape) != 1:
        raise ViewError(f"ESCAPE {escape!r} must be one character")
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise ViewError(f"LIKE {pattern!r}: after {escape} comes %, _ or another {escape}")
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
