"""Functions of values from several inputs: how views call them, and what the evaluator calls them.

A function whose value would not be Spark's for every row is not here; `REFUSED` says why, and what to write
instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spillway.plan.expression import PARTS

_MANY = 1_000


@dataclass(frozen=True, slots=True)
class Function:
    """`name` is the evaluator's; `values` are any arguments, `constants` literals that follow them."""

    name: str
    values: range
    constants: tuple[str, ...] = ()
    """Their types."""
    optional: int = 0
    """How many constants may be left out, from the last."""


def _values(least: int, most: int | None = None) -> range:
    return range(least, (least if most is None else most) + 1)


_BY_NAME: dict[str, Function] = {
    **{name: Function(name, _values(1)) for name in (*sorted(PARTS), "upper", "lower", "length")},
    **{name: Function(name, _values(1)) for name in ("abs", "sign", "sqrt", "floor", "ceil")},
    **{name: Function(name, _values(1)) for name in ("trim", "ltrim", "rtrim")},
    **{name: Function(name, _values(2)) for name in ("date_add", "date_sub", "datediff", "nullif")},
    **{name: Function(name, _values(1), ("int", "string"), 1) for name in ("lpad", "rpad")},
    **{name: Function(name, _values(2, _MANY)) for name in ("least", "greatest", "concat_ws")},
    "concat": Function("concat", _values(1, _MANY)),
    "coalesce": Function("coalesce", _values(1, _MANY)),
    "isnotnull": Function("isnotnull", _values(1)),
    "isnull": Function("is null", _values(1)),
    "mod": Function("%", _values(2)),
    "replace": Function("replace", _values(1), ("string", "string"), 1),
    "round": Function("round", _values(1), ("int",), 1),
    "substring": Function("substring", _values(1), ("int", "int"), 1),
    "trunc": Function("trunc", _values(1), ("string",)),
}
_ALIASES = {
    "ucase": "upper", "lcase": "lower", "char_length": "length", "character_length": "length",
    "nvl": "coalesce", "ifnull": "coalesce", "substr": "substring", "ceiling": "ceil", "signum": "sign",
    "dateadd": "date_add", "date_diff": "datediff", "dayofmonth": "day",
}  # fmt: skip
FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    _BY_NAME | {alias: _BY_NAME[name] for alias, name in _ALIASES.items()}
)
LAZY = frozenset({"coalesce"})
"""Functions that evaluate an argument only where those before it were null."""

_REGEX = "Java's regular expressions have no exact counterpart; apply it to columns of one input"
_JAVA = "its last digits depend on the Java version; apply it to columns of one input"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("power", "pow", "exp", "ln", "log", "log2", "log10", "sin", "cos", "tan"), _JAVA),
        "date_trunc": "it depends on the session's time zone; use trunc on dates, or apply it to one input",
        "ilike": "write lower(text) LIKE 'pattern' with a pattern in lower case",
        "rlike": _REGEX,
        "regexp": _REGEX,
        "regexp_like": _REGEX,
    }
)
SUPPORTED = (
    "+ - * / % div, comparisons, <=>, AND, OR, NOT, IS NULL, IN, BETWEEN, CASE, IF, COALESCE, NULLIF, "
    "CONCAT, ||, LIKE, CAST, abs, sign, sqrt, floor, ceil, round, mod, least, greatest, upper, lower, "
    "length, substring, trim, ltrim, rtrim, replace, lpad, rpad, concat_ws, date_add, date_sub, datediff, "
    "trunc, year, quarter, month, day, hour, minute, second, extract, plus or minus a constant INTERVAL"
)
