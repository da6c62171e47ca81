"""Parses a view into one statement: SQL text as a whole, a built view fragment by fragment.

A syntax error becomes one line with its position (and, for a built view, the method call).
"""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from spillway.errors import ViewError
from spillway.model import JoinedTable, View
from spillway.plan.sql.dialect import SpillwayDialect
from spillway.plan.sql.refusals import keep_text, refuse_pipes, refuse_statement
from spillway.plan.sql.window_clause import attach_windows, cut_windows


def parse_view(view: View, *, grouped: bool = False) -> exp.Select:
    """The view's `SELECT` over sources, not yet resolved; anything else is refused. `grouped`: it may have
    GROUP BY."""
    return flat_select(parse_query(view), grouped=grouped)


def parse_query(view: View) -> exp.Expr:
    """The view's statement as it was written; nothing is resolved, and no clause is refused yet."""
    if view.query is not None:
        statement = _statement(view.query, "the view's SQL")
        keep_text(statement, view.query)
        return statement
    if not view.tables:
        raise ViewError("the view is empty; write View.sql(...) or View.of(...).join(...)")
    first, *others = view.tables
    select = exp.Select(
        expressions=[_item(item) for item in view.items or ("*",)],
        from_=exp.From(this=_table(first.table)),
        joins=[_join(table) for table in others],
    )
    conditions = [_condition(condition, f"where({condition!r})") for condition in view.conditions]
    return select.where(*conditions, copy=False) if conditions else select


def parse_expression(sql: str) -> exp.Expr | None:
    """One expression as the plan keeps it; None if it cannot be read."""
    try:
        return sqlglot.parse_one(sql, dialect=SpillwayDialect)
    except SqlglotError:
        return None


def _table(table: str) -> exp.Expr:
    parsed: exp.Expr = _fragment(f"SELECT 1 FROM {table}", f"table {table!r}").args["from_"].this
    return parsed


def _join(table: JoinedTable) -> exp.Join:
    if table.using:
        using = [exp.to_identifier(name, quoted=True) for name in table.using]
        return exp.Join(this=_table(table.table), using=using)
    if table.on is None:
        return exp.Join(this=_table(table.table), kind="CROSS")
    return exp.Join(this=_table(table.table), on=_condition(table.on, f"join(on={table.on!r})"))


def _condition(condition: str, where: str) -> exp.Expr:
    parsed: exp.Expr = _fragment(f"SELECT 1 FROM t WHERE {condition}", where).args["where"].this
    return parsed


def _item(item: str) -> exp.Expr:
    parsed: exp.Expr = _fragment(f"SELECT {item} FROM t", f"select({item!r})").expressions[0]
    return parsed


def _fragment(sql: str, where: str) -> exp.Select:
    """Parse a fragment inside a statement, and check that it did not end its clause and begin another."""
    select = flat_select(_statement(sql, where))
    clauses = {name for name, value in select.args.items() if value} - {"expressions", "from_", "where"}
    if clauses or len(select.expressions) != 1:
        raise ViewError(f"{where} is more than one table, condition or item; pass each in its own call")
    return select


def flat_select(statement: exp.Expr, *, grouped: bool = False) -> exp.Select:
    """`statement` as one `SELECT` without `WITH`; any other is refused."""
    refuse_statement(statement, grouped=grouped)
    assert isinstance(statement, exp.Select)
    return statement


def _statement(sql: str, where: str) -> exp.Expr:
    try:
        sql, windows = cut_windows(sql)
        refuse_pipes(sql)
        statements = [
            statement for statement in sqlglot.parse(sql, dialect=SpillwayDialect) if statement is not None
        ]
    except RecursionError:
        raise too_deep(where) from None
    except ParseError as error:
        raise ViewError(_syntax_error(error, sql, where)) from None
    except SqlglotError as error:
        detail = str(error).splitlines()[0]
        raise ViewError(f"syntax error in {where}: {detail}; is a quote left open?") from None
    if not statements:
        raise ViewError(f"{where} is empty; write SELECT ... FROM ... JOIN ...")
    if len(statements) > 1 or isinstance(statements[0], exp.Block):
        raise ViewError(f"{where} has several statements; a view is one SELECT")
    attach_windows(statements[0], windows)
    return statements[0]


def too_deep(where: str) -> ViewError:
    """The refusal of a text with too many parentheses, subqueries or operators inside each other."""
    return ViewError(f"{where} is nested too deeply; divide it into several views")


def _syntax_error(error: ParseError, sql: str, where: str) -> str:
    if not error.errors:
        return f"syntax error in {where}: {' '.join(str(error).split()) or sql!r}"
    first: dict[str, Any] = error.errors[0]
    near = str(first.get("highlight") or "").strip()
    before = " ".join(str(first.get("start_context") or "").split())[-30:]
    # For a missing operand the parser names its own classes; the reader wants to know where it is missing.
    problem = str(first["description"])
    problem = "an operand is missing" if "missing for <class" in problem else problem.rstrip(".")
    place = f"line {first['line']}, column {first['col']}"
    return f"syntax error in {where}, {place}: {problem}, at '{before} {near}'"
