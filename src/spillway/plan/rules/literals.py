"""Constants of a view with the type that Spark gives them: `1` is int, `1.5` decimal(2,1), `1e0` double."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from spillway.plan.expression import Literal

_INT_LIMIT = 2**31
_BIGINT_LIMIT = 2**63
_SUFFIXES: dict[exp.DType, tuple[str, int]] = {
    exp.DType.TINYINT: ("tinyint", 2**7),
    exp.DType.SMALLINT: ("smallint", 2**15),
    exp.DType.BIGINT: ("bigint", _BIGINT_LIMIT),
}


def read_literal(node: exp.Expr) -> Literal | None:
    """The constant that `node` is, or None when it is not a plain one."""
    if isinstance(node, exp.Paren):
        return read_literal(node.this)
    if isinstance(node, exp.Null):
        return Literal(None, "void")
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this), "boolean")
    if isinstance(node, exp.Literal):
        return Literal(node.this, "string") if node.is_string else _number(node.this, negative=False)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _number(node.this.this, negative=True)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _suffixed(node)
    return None


def _number(text: str, *, negative: bool) -> Literal | None:
    sign = -1 if negative else 1
    if text.isdigit():
        value = sign * int(text)
        if -_INT_LIMIT <= value < _INT_LIMIT:
            return Literal(value, "int")
        if -_BIGINT_LIMIT <= value < _BIGINT_LIMIT:
            return Literal(value, "bigint")
        return None
    if "e" in text.lower():
        return Literal(sign * float(text), "double")
    number = Decimal(text) * sign
    _, digits, exponent = number.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits), scale)
    return Literal(number, f"decimal({precision},{scale})") if precision <= 38 else None


def _suffixed(node: exp.Cast) -> Literal | None:
    """`5L`, which the parser reads as a cast of 5 to bigint."""
    target, text = node.args["to"].this, node.this.this
    if target == exp.DType.DOUBLE and text.replace(".", "", 1).isdigit():
        return Literal(float(text), "double")
    if target in _SUFFIXES and text.isdigit():
        name, limit = _SUFFIXES[target]
        return Literal(int(text), name) if int(text) < limit else None
    return None
