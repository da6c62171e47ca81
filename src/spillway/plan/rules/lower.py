"""Splits a resolved SQL expression into state columns and what is evaluated after the join.

Each maximal part that depends on one input becomes a state column, which Spark computes before the row is
kept; the rest becomes an `Expression`. Where Spark evaluates a part only for some rows (a branch of CASE, the
right side of AND) and it may fail (a division), its columns are kept instead and it is evaluated here just as
lazily. Known limit: outside such branches a part is evaluated for every row of its input, even for rows
without a match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import normalise_type
from spillway.plan.expression import (
    INTERVAL_UNITS,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    arrow_type,
    like_regex,
    references,
    result_type,
    spark_type,
)
from spillway.plan.rules.functions import FUNCTIONS, LAZY, REFUSED, SUPPORTED
from spillway.plan.rules.literals import read_literal
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.sql import Scope, dependencies, display, label

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "<>",
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>", exp.DPipe: "||",
    exp.IntDiv: "div",
}  # fmt: skip
_MAY_FAIL = (exp.Div, exp.Mod, exp.IntDiv, exp.Cast)
_FUNCTIONS_MAY_FAIL = frozenset({"mod", "div", "floor", "ceil", "ceiling"})
_EXTRACTED = {
    "year": "year", "quarter": "quarter", "month": "month", "week": "weekofyear", "day": "day",
    "dayofweek": "dayofweek", "doy": "dayofyear", "hour": "hour", "minute": "minute",
}  # fmt: skip
_KEYWORDS: dict[type[exp.Expr], str] = {exp.ILike: "ilike", exp.RegexpLike: "rlike"}
_WHOLE = re.compile(r"-?\d{1,6}")


def _may_fail(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _FUNCTIONS_MAY_FAIL
    return isinstance(node, _MAY_FAIL)


def _not_literal(value: Expression) -> Expression:
    """A literal as a number of all digits of its type, which Spark takes it for in some places."""
    return Cast(value, value.type) if isinstance(value, Literal) else value


class Lowering:
    """Lowers the expressions of one view and collects the state columns they need."""

    def __init__(self, scope: Scope, columns: StateColumns) -> None:
        self._scope = scope
        self._columns = columns
        self._rules: dict[type[exp.Expr], Callable[[exp.Expr, bool], Expression]] = {
            exp.And: self._connector, exp.Or: self._connector, exp.Not: self._not, exp.Is: self._is,
            exp.Neg: self._neg, exp.In: self._in, exp.Between: self._between, exp.Case: self._case,
            exp.If: self._if, exp.Like: self._like, exp.Escape: self._escaped, exp.Cast: self._cast,
            exp.Anonymous: self._function, exp.Substring: self._substring, exp.Trim: self._trim,
            exp.Extract: self._extract,
            exp.NullSafeNEQ: lambda node, lazy: Call("not", (self._binary("<=>", node, lazy),)),
        }  # fmt: skip

    def lower(self, node: exp.Expr) -> Expression:
        """`node` as a state column, a literal, or an expression over them; types checked where known."""
        lowered = self._lower(node, lazy=False)
        if not isinstance(lowered, ColumnRef):
            self._check(lowered, node)
        return lowered

    def lower_condition(self, node: exp.Expr) -> Expression:
        """`node` as a predicate over joined rows."""
        lowered = self._lower(node, lazy=False)
        self._check(lowered, node, boolean=True)
        return lowered

    def _lower(self, node: exp.Expr, lazy: bool) -> Expression:
        if isinstance(node, exp.Paren):
            return self._lower(node.this, lazy)
        inputs = dependencies(node, self._scope)
        if not inputs:
            literal = read_literal(node)
            return self._columns.add(0, node) if literal is None else literal
        if len(inputs) == 1:
            lowered = self._try_to_descend(node) if lazy else None
            return self._columns.add(inputs[0], node) if lowered is None else lowered
        return self._descend(node, lazy)

    def _try_to_descend(self, node: exp.Expr) -> Expression | None:
        """A part that must stay lazy, split; None if it cannot fail or cannot be evaluated here."""
        if isinstance(node, exp.Column) or not any(_may_fail(part) for part in node.walk()):
            return None
        sizes = self._columns.sizes()
        try:
            lowered = self._descend(node, lazy=True)
            if self._check(lowered, node):
                return lowered
        except ViewError:
            pass
        self._columns.restore(sizes)
        return None

    def _descend(self, node: exp.Expr, lazy: bool) -> Expression:
        if (operator := _OPERATORS.get(type(node))) is not None:
            return self._binary(operator, node, lazy)
        rule = self._rules.get(type(node))
        if rule is None:
            raise self._unsupported(node)
        return rule(node, lazy)

    def _binary(self, operator: str, node: exp.Expr, lazy: bool) -> Call:
        value, interval = node.this, node.expression
        if operator == "+" and isinstance(value, exp.Interval):
            value, interval = interval, value
        if operator in "+-" and isinstance(interval, exp.Interval):
            return Call(operator, (self._lower(value, lazy), self._interval(interval)))
        return Call(operator, (self._lower(node.this, lazy), self._lower(node.expression, lazy)))

    def _interval(self, node: exp.Interval) -> Literal:
        """A constant number of one unit."""
        amount, unit = node.this, node.args.get("unit")
        name = unit.name.lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
        if name not in INTERVAL_UNITS or not isinstance(amount, exp.Literal):
            raise self._unsupported(node.parent or node)
        if _WHOLE.fullmatch(amount.name) is None:
            raise self._unsupported(node.parent or node)
        return Literal(int(amount.name), f"interval {name}")

    def _connector(self, node: exp.Expr, lazy: bool) -> Call:
        function = "and" if isinstance(node, exp.And) else "or"
        return Call(function, (self._lower(node.this, lazy), self._lower(node.expression, lazy=True)))

    def _not(self, node: exp.Expr, lazy: bool) -> Call:
        return Call("not", (self._lower(node.this, lazy),))

    def _neg(self, node: exp.Expr, lazy: bool) -> Call:
        return Call("negative", (self._lower(node.this, lazy),))

    def _is(self, node: exp.Expr, lazy: bool) -> Call:
        value = self._lower(node.this, lazy)
        if isinstance(node.expression, exp.Null):
            return Call("is null", (value,))
        if isinstance(node.expression, exp.Boolean):
            return Call("<=>", (value, Literal(bool(node.expression.this), "boolean")))
        raise self._unsupported(node)

    def _in(self, node: exp.Expr, lazy: bool) -> Expression:
        if not node.expressions or set(node.args) - {"this", "expressions"}:
            raise self._unsupported(node)
        items = [self._lower(item, lazy=True) for item in node.expressions]
        return Call("in", (self._lower(node.this, lazy), *items))

    def _between(self, node: exp.Expr, lazy: bool) -> Call:
        if node.args.get("symmetric"):
            raise self._unsupported(node)
        value = _not_literal(self._lower(node.this, lazy))
        low, high = (self._lower(node.args[name], lazy) for name in ("low", "high"))
        return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))

    def _case(self, node: exp.Expr, lazy: bool) -> Call:
        arguments: list[Expression] = []
        operand = node.this
        for number, branch in enumerate(node.args["ifs"]):
            test = (
                branch.this if operand is None else exp.EQ(this=operand.copy(), expression=branch.this.copy())
            )
            arguments += [self._lower(test, lazy or number > 0), self._lower(branch.args["true"], lazy=True)]
        return Call("case", (*arguments, self._else(node.args.get("default"))))

    def _if(self, node: exp.Expr, lazy: bool) -> Call:
        value = self._lower(node.args["true"], lazy=True)
        return Call("case", (self._lower(node.this, lazy), value, self._else(node.args.get("false"))))

    def _else(self, node: exp.Expr | None) -> Expression:
        return Literal(None, "void") if node is None else self._lower(node, lazy=True)

    def _like(self, node: exp.Expr, lazy: bool, *escape: Literal) -> Expression:
        pattern = read_literal(node.expression)
        if pattern is None or not isinstance(pattern.value, str):
            raise self._unsupported(node)
        like_regex(pattern.value, *(str(character.value) for character in escape))
        call = Call("like", (self._lower(node.this, lazy), pattern, *escape))
        return Call("not", (call,)) if node.args.get("negate") else call

    def _escaped(self, node: exp.Expr, lazy: bool) -> Expression:
        escape = read_literal(node.expression)
        if not isinstance(node.this, exp.Like) or escape is None or escape.type != "string":
            raise self._unsupported(node)
        return self._like(node.this, lazy, escape)

    def _cast(self, node: exp.Expr, lazy: bool) -> Cast:
        if not isinstance(node, exp.Cast) or isinstance(node, exp.TryCast):
            raise self._unsupported(node)
        target = display(label(node.args["to"]))
        return Cast(self._lower(node.this, lazy), normalise_type(target))

    def _function(self, node: exp.Expr, lazy: bool) -> Expression:
        return self._call(str(node.this).lower(), node.expressions, node, lazy)

    def _substring(self, node: exp.Expr, lazy: bool) -> Expression:
        parts = [node.args.get(name) for name in ("this", "start", "length")]
        return self._call("substring", [part for part in parts if part is not None], node, lazy)

    def _trim(self, node: exp.Expr, lazy: bool) -> Expression:
        """`trim(BOTH ' ' FROM text)`, each word of which may be left out."""
        names = {"LEADING": "ltrim", "TRAILING": "rtrim", "": "trim", "BOTH": "trim"}
        name = names[str(node.args.get("position") or "").upper()]
        if (given := node.args.get("expression")) is None:
            return self._call(name, [node.this], node, lazy)
        characters = read_literal(given)
        if characters is None or characters.type != "string":
            raise self._unsupported(node)
        return Call(name, (self._lower(node.this, lazy), characters))

    def _extract(self, node: exp.Expr, lazy: bool) -> Expression:
        part = _EXTRACTED.get(node.this.name.lower())
        if part is None:
            raise self._unsupported(node)
        return self._call(part, [node.expression], node, lazy)

    def _call(self, name: str, arguments: Sequence[exp.Expr], node: exp.Expr, lazy: bool) -> Expression:
        """A function of values, and of constants that follow them."""
        function = FUNCTIONS.get(name)
        if function is None:
            raise self._unsupported(node)
        count = len(arguments) if not function.constants else function.values.start
        constants = [read_literal(argument) for argument in arguments[count:]]
        kinds = tuple("" if constant is None else constant.type for constant in constants)
        least = len(function.constants) - function.optional
        if (
            min(count, len(arguments)) not in function.values
            or len(kinds) < least
            or kinds != function.constants[: len(kinds)]
        ):
            raise self._unsupported(node)
        values = tuple(
            self._lower(argument, lazy or (function.name in LAZY and number > 0))
            for number, argument in enumerate(arguments[:count])
        )
        if function.name == "nullif":
            values = (_not_literal(values[0]), values[1])
            return Call("case", (Call("=", values), Literal(None, "void"), values[0]))
        if function.name == "isnotnull":
            return Call("not", (Call("is null", values),))
        return Call(function.name, (*values, *(constant for constant in constants if constant is not None)))

    def _check(self, lowered: Expression, node: exp.Expr, *, boolean: bool = False) -> bool:
        """Refuse types that do not fit; False if the catalog does not know all of them."""
        types = {ref: self._columns.type(ref) for ref in references(lowered)}
        arrow = {ref: arrow_type(kind) for ref, kind in types.items() if kind is not None}
        if len(arrow) < len(types):
            return False
        for ref, kind in arrow.items():
            if kind is None:
                raise ViewError(
                    f"{label(node)} combines inputs, but {types[ref]} is not supported there; cast it"
                )
        try:
            kind = result_type(lowered, lambda ref: arrow[ref])
        except ViewError as error:
            raise ViewError(f"{label(node)}: {str(error).rsplit(' (in ', 1)[0]}") from None
        if boolean and not pa.types.is_boolean(kind):
            raise ViewError(
                f"{label(node)} is {spark_type(kind)}, but a condition must be boolean; write a comparison"
            )
        return True

    def _unsupported(self, node: exp.Expr) -> ViewError:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else _KEYWORDS.get(type(node), "")
        if name in REFUSED:
            return ViewError(f"{label(node)} is not supported over several inputs: {REFUSED[name]}")
        names = [self._scope.inputs[index].alias for index in dependencies(node, self._scope)]
        return ViewError(
            f"{label(node)} combines {' and '.join(names)} in a way that is not supported yet; "
            f"supported over several inputs: {SUPPORTED}"
        )
