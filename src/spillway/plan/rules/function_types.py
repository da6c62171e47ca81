"""Types of Spark's common functions and casts, for arguments of exactly the types that they ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)")

_TEXT, _INT, _DOUBLE = "string", "int", "double"
_DATE_PARTS = (
    "year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekday", "weekofyear",
)  # fmt: skip
_SIGNATURES: Mapping[str, tuple[tuple[Sequence[str], ...], str]] = MappingProxyType(
    {
        **{name: (tuple([kind] for kind in sorted(_TIMES)), _INT) for name in _DATE_PARTS},
        **{
            name: ((["timestamp"], ["timestamp_ntz"]), _INT) for name in ("hour", "minute", "second")
        },
        **{name: ((["timestamp"],), "bigint") for name in ("unix_micros", "unix_millis", "unix_seconds")},
        **{name: (([_TEXT],), _TEXT) for name in ("trim", "ltrim", "rtrim", "initcap", "reverse")},
        **{name: (([_TEXT, _INT], [_TEXT, _INT, _INT]), _TEXT) for name in ("substring", "substr")},
        **{name: (([_TEXT, _INT, _TEXT],), _TEXT) for name in ("lpad", "rpad")},
        **{name: (([_DOUBLE],), _DOUBLE) for name in ("sqrt", "exp", "ln", "log10")},
        **{name: (([_DOUBLE],), "bigint") for name in ("floor", "ceil", "ceiling")},
        "timestampdiff": ((["timestamp"] * 2, ["timestamp_ntz"] * 2), "bigint"),
        "replace": (([_TEXT] * 2, [_TEXT] * 3), _TEXT),
        "repeat": (([_TEXT, _INT],), _TEXT),
        "split_part": (([_TEXT, _TEXT, _INT],), _TEXT),
        "date_trunc": (([_TEXT, "timestamp"],), "timestamp"),
        "date_format": (([ "timestamp", _TEXT],), _TEXT),
        "trunc": ((["date", _TEXT],), "date"),
        "to_date": (([_TEXT], ["date"], ["timestamp"]), "date"),
        "date_add": ((["date", _INT],), "date"),
        "date_sub": ((["date", _INT],), "date"),
        "datediff": ((["date"] * 2,), _INT),
        "round": (([_DOUBLE],), _DOUBLE),
        "power": (([_DOUBLE] * 2,), _DOUBLE),
        "pow": (([_DOUBLE] * 2,), _DOUBLE),
    }
)  # fmt: skip
"""By name: which arguments are known, and the type of the result."""


def function_type(name: str, arguments: Callable[[], list[str]]) -> str | None:
    """The type of a function's result; None for a function, or arguments, that are not listed here."""
    if name not in _SIGNATURES:
        return None
    known, result = _SIGNATURES[name]
    return result if arguments() in [list(kinds) for kinds in known] else None


def is_castable(source: str, target: str) -> bool:
    """Whether Spark, in ANSI mode, casts a value of one type to the other; False where that is not known."""
    if target == "string":
        return source in {"string", "boolean", "binary", "void"} | _NUMBERS | _TIMES or _is_number(source)
    if _is_number(target):
        return source in ("string", "boolean", "void") or _is_number(source)
    if target == "boolean":
        return source in ("string", "boolean", "void") or _is_number(source)
    if target in _TIMES:
        return source in ("string", "void") or source in _TIMES
    return target == "binary" and source in ("string", "binary", "void")


def _is_number(kind: str) -> bool:
    return kind in _NUMBERS or _DECIMAL.fullmatch(kind) is not None
