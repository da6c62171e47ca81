"""What a view may not contain yet: each clause is refused by name, in one line that quotes it and says where.

The tables list what is allowed, so a part of the statement that no rule knows is refused too: a clause that
the parser learns later cannot be dropped silently. A new feature removes its line from these tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from spillway.errors import ViewError
from spillway.plan.sql.dialect import SpillwayDialect, is_aggregate
from spillway.plan.sql.render import quote

_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where"})
_TABLE_PARTS = frozenset({"this", "db", "catalog", "alias"})
_CLAUSES = {
    "with_": ("WITH", "name the sources directly"),
    "fetch": ("FETCH", "limit when reading the result"),
    "by_name": ("UNION BY NAME", "give the columns of both sides the same order"),
    "search": ("SEARCH", "remove it"),
    "cycle": ("CYCLE", "remove it"),
    "recursive": ("WITH RECURSIVE", "remove RECURSIVE if no query reads itself"),
    "materialized": ("MATERIALIZED", "remove it; Spillway chooses the plan"),
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
_TEXT = "spillway_text"
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
        raise unsupported(set_operation(statement), statement, "run one view per SELECT")
    refuse_other_statement(statement)
    refuse_select(statement, ["group"] if grouped else [])


def refuse_other_statement(statement: exp.Expr) -> None:
    """Refuse what is neither a `SELECT` nor made of several."""
    if isinstance(statement, exp.Values):
        raise unsupported("VALUES", statement, "name a source")
    if not isinstance(statement, exp.Select):
        raise ViewError(f"a view is a SELECT, not: {quote(statement)}")


def refuse_select(select: exp.Expr, allowed: Iterable[str] = ()) -> None:
    """Refuse the clauses of a `SELECT` beside FROM, WHERE and those that are `allowed`."""
    refuse_parts(select, _SELECT_PARTS.union(allowed))
    if select.args.get("from_") is None:
        raise ViewError(f"a view joins at least two inputs, but this one has no FROM: {quote(select)}")


def refuse_parts(node: exp.Expr, allowed: Iterable[str]) -> None:
    """Refuse every part of a statement that is not `allowed`."""
    for part, value in node.args.items():
        if value and part not in allowed:
            shown = value[0] if isinstance(value, list) else value
            raise _unsupported_part(part, shown if isinstance(shown, exp.Expr) else node)


def set_operation(node: exp.SetOperation) -> str:
    """The words of a set operation."""
    name = type(node).__name__.upper()
    return name if node.args.get("distinct") else f"{name} ALL"


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
    refuse_parts(table, _TABLE_PARTS)
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
        if isinstance(part, exp.Exists):
            raise unsupported("EXISTS with a subquery", part, "join its sources in FROM")
        if isinstance(part, exp.In) and part.args.get("query") is not None:
            raise unsupported("IN with a subquery", part, "join its sources in FROM")
        if isinstance(part, exp.Select | exp.Subquery | exp.SetOperation):
            raise unsupported("a scalar subquery", part, "join its sources in FROM")
        if isinstance(part, exp.Window):
            raise unsupported("a window function", part, "compute it when reading the result")
        if isinstance(part, exp.Placeholder | exp.Parameter):
            raise ViewError(f"a view has no parameters: {quote(part)}; write the value")
        if isinstance(part, exp.Any | exp.All) and not isinstance(part.parent, exp.Like | exp.ILike):
            name = f"{type(part).__name__.upper()}, a quantified comparison,"
            advice = (
                "join its sources in FROM" if part.find(exp.Select) else "write comparisons with OR or AND"
            )
            raise unsupported(name, part, advice)
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
    return ViewError(f"{clause} is not supported yet: {quote(node)}{_place(clause, node)}; {advice}")


def refuse_pipes(sql: str) -> None:
    """Refuse `FROM a |> WHERE ...`: the parser would put clauses together in ways that Spark does not."""
    for token in SpillwayDialect().tokenize(sql):
        if token.token_type is TokenType.PIPE_GT:
            place = _line_and_column(sql, token.start)
            raise ViewError(f"|> is not supported yet{place}; write SELECT ... FROM ... WHERE")


def keep_text(statement: exp.Expr, sql: str) -> None:
    """Let refusals say where in `sql` a clause of the statement is."""
    statement.meta[_TEXT] = sql


def _place(clause: str, node: exp.Expr) -> str:
    """Line and column of a clause: of its keyword, or else of the first word inside it.

    The parser keeps the positions of names and literals only. So a keyword is searched before the first of
    them. Empty where the text is not known.
    """
    sql: str | None = node.root().meta.get(_TEXT)
    if sql is None:
        return ""
    starts = _starts(_first_operand(node))
    if not starts:
        return ""
    start = min(starts)
    keyword = clause.split()[0].strip(",")
    tokens = SpillwayDialect().tokenize(sql)
    before = [token.start for token in tokens if token.start <= start and _is(token, keyword)]
    return _line_and_column(sql, max(before, default=start))


def _is(token: Token, keyword: str) -> bool:
    """Whether a token, which may have several words, begins with the keyword."""
    return token.text.upper().split(" ")[0] == keyword


def _first_operand(node: exp.Expr) -> exp.Expr:
    """What follows the keyword of a clause."""
    if isinstance(node, exp.SetOperation):
        right: exp.Expr = node.expression
        return right
    if isinstance(node, exp.In):
        query: exp.Expr = node.args["query"]
        return query
    if isinstance(node, exp.Distinct | exp.Hint) and node.parent is not None:
        item: exp.Expr = node.parent.expressions[0]
        return item
    return node


def _starts(node: exp.Expr) -> list[Any]:
    return [part.meta["start"] for part in node.walk() if "start" in part.meta]


def _line_and_column(sql: str, start: int) -> str:
    line = sql.count("\n", 0, start) + 1
    return f" (line {line}, column {start - sql.rfind(chr(10), 0, start)})"
