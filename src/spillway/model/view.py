"""A view as the user writes it: SQL text, or the same query built step by step in Python.

A `View` is a value: every builder method returns a new one, and nothing is parsed before `plan_view` sees
it, so that both forms meet the same checks. Known limit: fragments are SQL text; there is no expression
object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spillway.errors import ViewError


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table and, for all but the first, the condition that joins it: `on`, or the columns of `using`."""

    table: str
    on: str | None = None
    using: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A query over sources, given as `query` (SQL) or as `tables`, `conditions` and `items` (built)."""

    query: str | None = None
    tables: tuple[JoinedTable, ...] = ()
    conditions: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    tree: tuple[Any, ...] | None = None
    """The joins to use, as nested tuples of input names; None: planned."""
    join_kind: str = "tree"
    """How rows are spread over the groups of several joins; see `plan.partitioning`."""

    @classmethod
    def sql(cls, text: str) -> View:
        """The view that the SQL `SELECT` in `text` describes."""
        return cls(query=text)

    def with_tree(self, *parts: Any) -> View:
        """Join in this order: `with_tree(("a", "b", "c"), "d")` joins a, b and c, and the result with d."""
        return replace(self, tree=_frozen(parts))

    def with_join(self, kind: str) -> View:
        """Spread rows of joins on different keys by each join's own key (`tree`, the default), or by the same
        key through all joins, with copies of inputs that lack it (`replicate`, `multi-partition`).
        """
        return replace(self, join_kind=kind)

    @classmethod
    def of(cls, table: str) -> View:
        """Start a view from one table: `View.of("prices p")`."""
        return cls(tables=(JoinedTable(table),))

    def join(self, table: str, *, on: str | None = None, using: str | tuple[str, ...] = ()) -> View:
        """Join `table` by the condition `on`, by columns of the same name (`using`), or in `where`."""
        columns = (using,) if isinstance(using, str) else tuple(using)
        if on is not None and columns:
            raise ViewError(f"join({table!r}) has both on and using; keep one of them")
        return replace(self._built("join"), tables=(*self.tables, JoinedTable(table, on, columns)))

    def where(self, condition: str) -> View:
        """Keep only rows for which `condition` holds, besides all earlier conditions."""
        return replace(self._built("where"), conditions=(*self.conditions, condition))

    def select(self, *items: str) -> View:
        """Append columns or expressions to the result: `select("p.symbol", "v.volume AS vol")`."""
        return replace(self._built("select"), items=(*self.items, *items))

    @property
    def text(self) -> str:
        """The view as one SQL statement."""
        if self.query is not None:
            return self.query
        first, *others = self.tables
        parts = [f"SELECT {', '.join(self.items) or '*'} FROM {first.table}"]
        parts += [_join_clause(table) for table in others]
        if self.conditions:
            parts.append("WHERE " + " AND ".join(f"({condition})" for condition in self.conditions))
        return " ".join(parts)

    def _built(self, method: str) -> View:
        if self.query is not None:
            raise ViewError(
                f"{method}() needs a view started with View.of(...); this one is SQL: {self.query}"
            )
        return self


def _frozen(part: Any) -> Any:
    """Lists as tuples, at any depth."""
    if isinstance(part, str):
        return part
    if isinstance(part, list | tuple):
        return tuple(_frozen(item) for item in part)
    raise ViewError(f"tree: {part!r} is neither the name of an input nor a list of parts")


def _join_clause(table: JoinedTable) -> str:
    if table.on is not None:
        return f"JOIN {table.table} ON {table.on}"
    if table.using:
        return f"JOIN {table.table} USING ({', '.join(table.using)})"
    return f"CROSS JOIN {table.table}"
