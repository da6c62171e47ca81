"""What a view may not contain yet: each clause is refused by name, in one line that quotes it.

The tables list what is allowed, so a part of the statement that no rule knows is refused too: a clause that
the parser learns later cannot be dropped silently. A new feature removes its line from these tables.
"""

from __future__ import annotations

from sqlglot import exp

from spillway.errors import ViewError
from spillway.plan.sql.dialect import is_aggregate
from spillway.plan.sql.render import quote

_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where"})
_TABLE_PARTS = frozenset({"this", "db", "catalog", "alias"})
_CLAUSES = {
    "with_": ("WITH", "name the sources directly"),
    "distinct": ("DISTINCT", "remove duplicates when reading the result"),
    "group": ("GROUP BY", "aggregate when reading the result"),
    "having": ("HAVING", "aggregate when reading the result"),
    "order": ("ORDER BY", "results of a running view have no order; sort when reading"),
    "sort": ("SORT BY", "results of a running view have no order; sort when reading"),
    "cluster": ("CLUSTER BY", "remove it; Spillway partitions by the join key"),
    "distribute": ("DISTRIBUTE BY", "remove it; Spillway partitions by the join key"),
    "limit": ("LIMIT", "limit when reading the result"),
    "offset": ("OFFSET", "skip rows when reading the result"),
    "qualify": ("QUALIFY", "filter when reading the result"),
    "windows": ("WINDOW", "compute window functions when reading the result"),
    "laterals": ("LATERAL VIEW", "explode the column before the source reaches the view"),
    "pivots": ("PIVOT", "pivot when reading the result"),
    "sample": ("TABLESAMPLE", "a sample is not an exact answer; filter in WHERE"),
    "hint": ("a hint", "remove it; Spillway chooses the plan"),
}
_CHANGING = frozenset({
    "rand", "randn", "random", "uuid", "randstr", "uniform", "now", "curdate", "current_date",
    "current_timestamp", "current_time", "localtimestamp", "current_user", "session_user", "user",
    "current_catalog", "current_database", "current_schema", "monotonically_increasing_id",
    "spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length",
    "shuffle", "reflect", "try_reflect", "java_method",
})  # fmt: skip
_GENERATORS = frozenset({
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack",
    "json_tuple", "variant_explode",
})  # fmt: skip


def refuse_statement(statement: exp.Expr, *, grouped: bool = False) -> None:
    """Refuse a statement, or a clause of it, that a view cannot have; `grouped`: it may have GROUP BY."""
    if isinstance(statement, exp.SetOperation):
        name = type(statement).__name__.upper()
        raise unsupported(name, statement, "run one view per SELECT")
    if isinstance(statement, exp.Values):
        raise unsupported("VALUES", statement, "name a source")
    if not isinstance(statement, exp.Select):
        raise ViewError(f"a view is a SELECT, not: {quote(statement)}")
    for part, value in statement.args.items():
        if value and part not in _SELECT_PARTS and not (grouped and part == "group"):
            shown = value[0] if isinstance(value, list) else value
            raise _unsupported_part(part, shown if isinstance(shown, exp.Expr) else statement)
    if statement.args.get("from_") is None:
        raise ViewError(f"a view joins at least two inputs, but this one has no FROM: {quote(statement)}")


def refuse_table(table: exp.Expr) -> exp.Table:
    """`table` when it is a plain source with at most an alias; everything else is refused."""
    if isinstance(table, exp.Subquery | exp.Select):
        raise unsupported("a subquery in FROM", table, "name its sources in FROM and its conditions in WHERE")
    if isinstance(table, exp.Lateral | exp.Unnest):
        raise unsupported("LATERAL", table, "explode the column before the source reaches the view")
    if isinstance(table, exp.Values):
        raise unsupported("VALUES", table, "name a source")
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise unsupported("a table function in FROM", table, "name a source")
    for part, value in table.args.items():
        if value and part not in _TABLE_PARTS:
            raise _unsupported_part(part, table)
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise unsupported("a column list after a table alias", table, "rename columns in the select list")
    return table


def refuse_join(join: exp.Join) -> None:
    """Refuse every join that is not an inner join by ON, USING or WHERE."""
    if str(join.args.get("method") or "").upper() == "NATURAL":
        raise unsupported("NATURAL JOIN", join, "write JOIN ... USING (column)")
    words = [str(join.args.get(part) or "").upper() for part in ("method", "side", "kind")]
    name = " ".join(word for word in words if word)
    if name not in ("", "INNER", "CROSS"):
        raise unsupported(f"{name} JOIN", join, "use an inner join: JOIN ... ON")
    for part in ("hint", "match_condition", "expressions", "pivots"):
        if join.args.get(part):
            raise unsupported(f"{part.replace('_', ' ')} of a join", join, "remove it")


def refuse_expression(node: exp.Expr) -> None:
    """Refuse functions whose value does not depend on one joined row alone."""
    for part in node.walk():
        if isinstance(part, exp.Select | exp.Subquery | exp.Exists | exp.SetOperation):
            raise unsupported("a subquery", part, "join its sources in FROM")
        if isinstance(part, exp.Window):
            raise unsupported("a window function", part, "compute it when reading the result")
        if isinstance(part, exp.Placeholder | exp.Parameter):
            raise ViewError(f"a view has no parameters: {quote(part)}; write the value")
        if isinstance(part, exp.Any | exp.All) and not isinstance(part.parent, exp.Like | exp.ILike):
            raise unsupported("a quantified comparison", part, "write the comparisons with OR or AND")
        if isinstance(part, exp.Func):
            _refuse_function(part)


def _refuse_function(call: exp.Func) -> None:
    name = (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()
    if name in _CHANGING or (name == "unix_timestamp" and not call.expressions):
        raise ViewError(
            f"{quote(call)} gives another value each time, but a view must be repeatable; "
            "take the value from a source"
        )
    if is_aggregate(name) and not isinstance(call, exp.Connector):
        raise unsupported("an aggregate", call, "aggregate when reading the result")
    if name in _GENERATORS:
        raise unsupported("a generator", call, "explode the column before the source reaches the view")


def _unsupported_part(part: str, node: exp.Expr) -> ViewError:
    clause, advice = _CLAUSES.get(part, (part.strip("_").upper().replace("_", " "), "remove it"))
    return unsupported(clause, node, advice)


def unsupported(clause: str, node: exp.Expr, advice: str) -> ViewError:
    """The refusal of a clause."""
    return ViewError(f"{clause} is not supported yet: {quote(node)}; {advice}")
