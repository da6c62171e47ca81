"""Names to columns: every column of an expression becomes `alias`.`column`, with the catalog's own spelling.

After this rule the `table` of every `exp.Column` is the alias of exactly one input, struct fields are `Dot`s
above it, and function names are in lower case, so equal expressions have equal text.
"""

from __future__ import annotations

from sqlglot import exp

from spillway.errors import ViewError
from spillway.plan.sql.refusals import refuse_expression
from spillway.plan.sql.render import quote
from spillway.plan.sql.scope import Input, Scope, suggestion

_UNIT_FIRST = frozenset({
    "dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff",
})  # fmt: skip
_UNITS = frozenset({
    "year", "years", "quarter", "month", "months", "week", "weeks", "day", "days", "dayofyear",
    "hour", "hours", "minute", "minutes", "second", "seconds", "millisecond", "milliseconds",
    "microsecond", "microseconds",
})  # fmt: skip


def resolve(node: exp.Expr, scope: Scope) -> exp.Expr:
    """A copy of `node` in which every name is resolved; unknown and ambiguous names are refused."""
    refuse_expression(node)
    root = exp.Paren(this=node.copy())  # a holder, so that the topmost node can be replaced too
    _keep_units(root)
    for call in root.find_all(exp.Anonymous):
        call.set("this", str(call.this).lower())
    for column in list(root.find_all(exp.Column)):
        if isinstance(column.this, exp.Star):
            raise ViewError(f"* inside an expression is not supported yet: {quote(node)}; name the columns")
        column.replace(_resolve_column(column, scope))
    refuse_shadowing(root)
    resolved: exp.Expr = root.this.pop()
    return resolved


def dependencies(node: exp.Expr, scope: Scope) -> tuple[int, ...]:
    """The inputs whose columns a resolved `node` reads, in FROM order."""
    found = {scope.position(column.table) for column in node.find_all(exp.Column)}
    return tuple(sorted(index for index in found if index is not None))


def without_parentheses(node: exp.Expr) -> exp.Expr:
    """`node` without the parentheses around the whole of it."""
    return without_parentheses(node.this) if isinstance(node, exp.Paren) else node


def _resolve_column(column: exp.Column, scope: Scope) -> exp.Expr:
    parts = [part.name for part in column.parts]
    index = scope.position(parts[0]) if len(parts) > 1 else None
    if index is not None and (found := scope.inputs[index].find(parts[1])) is not None:
        return _access(scope.inputs[index], found.name, parts[2:])
    candidates = [visible for visible in scope.visible if visible.column.name.lower() == parts[0].lower()]
    if len(candidates) > 1:
        names = " or ".join(
            f"{scope.inputs[candidate.input].alias}.{candidate.column.name}" for candidate in candidates
        )
        raise ViewError(f"ambiguous column {quote(column)}: write {names}")
    if candidates:
        return _access(scope.inputs[candidates[0].input], candidates[0].column.name, parts[1:])
    if index is not None:
        input_ = scope.inputs[index]
        known = [f"{input_.alias}.{column.name}" for column in input_.columns]
        raise ViewError(f"unknown column {quote(column)}; {suggestion(f'{input_.alias}.{parts[1]}', known)}")
    if len(parts) > 1:
        known = [input_.alias for input_ in scope.inputs]
        raise ViewError(f"unknown input {parts[0]} in {quote(column)}; {suggestion(parts[0], known)}")
    known = sorted({visible.column.name for visible in scope.visible})
    raise ViewError(f"unknown column {quote(column)}; {suggestion(parts[0], known)}")


def _access(input_: Input, name: str, fields: list[str]) -> exp.Expr:
    access: exp.Expr = exp.column(name, table=input_.alias, quoted=True)
    for field in fields:
        access = exp.Dot(this=access, expression=exp.to_identifier(field.lower(), quoted=True))
    return access


def _keep_units(root: exp.Expr) -> None:
    """`datediff(day, x, y)`: the unit is a word of the function, not a column."""
    for call in root.find_all(exp.Anonymous):
        if str(call.this).lower() not in _UNIT_FIRST or not call.expressions:
            continue
        unit = call.expressions[0]
        if isinstance(unit, exp.Column) and len(unit.parts) == 1 and unit.name.lower() in _UNITS:
            unit.replace(exp.Var(this=unit.name.upper()))


def refuse_shadowing(root: exp.Expr) -> None:
    """Aliases are dropped before Spark runs an expression: a lambda's parameter must not capture a column."""
    for function in root.find_all(exp.Lambda):
        parameters = {parameter.name.lower() for parameter in function.expressions}
        for column in function.this.find_all(exp.Column):
            if column.name.lower() in parameters:
                raise ViewError(
                    f"the parameter {column.name} of {quote(function)} is also a column that it uses; "
                    "rename it"
                )
