"""The groups of an aggregated view: one stored row per group, brought up to date from a round's delta.

Counts, and sums of integers and decimals, are added up. A minimum or maximum is compared with what came; if a
value that may be it has left, the group is counted again from the stored rows of the join. A group with sums
of floating-point numbers always is, because adding and subtracting leaves rounding errors. All of it happens
in the transaction that applies the delta to the stored rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from spillway.errors import ViewError
from spillway.maintain.aggregation import AggregateColumn, Aggregation
from spillway.maintain.identifier import quoted

GROUP = "group_digest"
_WEIGHT_DIGITS = 9
_WIDEST = 38


class GroupStore:
    """The tables and statements of one aggregation; `rows` and `delta` are tables with the stored columns."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, aggregation: Aggregation) -> None:
        self._connection = connection
        self._aggregation = aggregation
        self._types: dict[str, str] = {}

    def digest(self) -> str:
        """SQL of the group of a row."""
        names = [f"o{place}" for place in range(self._aggregation.groups)]
        values = [f"coalesce(concat(length({n}::VARCHAR), ':', {n}::VARCHAR), '-')" for n in names]
        return f"md5_number(concat({', '.join(values)}))" if values else "0::UHUGEINT"

    def replace(self, rows: str) -> None:
        """Count all groups of the table `rows`, whose column `_count` says how often a row occurs."""
        self._read_types(rows)
        self._connection.execute(
            f"CREATE OR REPLACE TABLE group_rows AS {self._counted(rows, '_count', 'true')}"
        )
        self._connection.execute(f"CREATE OR REPLACE VIEW result AS {self._result()}")

    def apply(self, rows: str, delta: str, weight: str) -> None:
        """Bring the groups of `delta` up to date; `rows` has it applied already."""
        self._read_types(rows)
        left = [
            f"{column.function}(o{column.place}) FILTER ({weight} < 0) AS left{number}"
            for number, column in self._extremes()
        ]
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE moved AS {self._counted(delta, weight, 'true', left)}"
        )
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE recounted AS SELECT m.{GROUP} FROM moved m "
            f"JOIN group_rows g USING ({GROUP}) WHERE {self._must_recount()}"
        )
        names = [*self._names()]
        added = [*self._added()]
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE regrouped AS SELECT {', '.join(added)} FROM moved m "
            f"LEFT JOIN group_rows g USING ({GROUP}) WHERE m.{GROUP} NOT IN (FROM recounted) UNION ALL "
            f"SELECT {', '.join(names)} FROM "
            f"({self._counted(rows, '_count', f'{GROUP} IN (FROM recounted)')})"
        )
        self._connection.execute(f"DELETE FROM group_rows WHERE {GROUP} IN (SELECT {GROUP} FROM moved)")
        self._connection.execute(
            f"INSERT INTO group_rows SELECT {', '.join(names)} FROM regrouped WHERE row_count <> 0"
        )

    def wrong(self, rows: str) -> int:
        """How many groups differ from the table `rows`; sums of floating-point numbers only by rounding."""
        self._read_types(rows)
        differs = [f"(g.{GROUP} IS NULL) <> (w.{GROUP} IS NULL)", "g.row_count IS DISTINCT FROM w.row_count"]
        sizes = []
        for name, kind in self._state():
            differ = f"g.{name} IS DISTINCT FROM w.{name}"
            if kind == "DOUBLE" and name.startswith("s"):
                place = self._aggregation.columns[int(name[1:])].place
                sizes.append(f"sum(abs(o{place} * _count)) AS size_of_{name}")
                # The order of summing shows in the last digits, by the size of what is summed.
                near = f"abs(g.{name} - w.{name}) <= 1e-9 * greatest(1, w.size_of_{name})"
                differ += f" AND NOT (isfinite(g.{name}) AND isfinite(w.{name}) AND {near})"
            differs.append(f"({differ})")
        counted = self._counted(rows, "_count", "true", sizes)
        ((number,),) = self._connection.execute(
            f"SELECT count(*) FROM group_rows g FULL JOIN ({counted}) w "
            f"USING ({GROUP}) WHERE {' OR '.join(differs)}"
        ).fetchall()
        return int(number)

    def _read_types(self, rows: str) -> None:
        if not self._types:
            found = self._connection.execute(f"DESCRIBE {rows}").fetchall()
            self._types = {name: kind for name, kind, *_ in found}

    def _columns(self, *functions: str) -> Iterator[tuple[int, AggregateColumn]]:
        return (
            (number, column)
            for number, column in enumerate(self._aggregation.columns)
            if column.function in functions
        )

    def _extremes(self) -> list[tuple[int, AggregateColumn]]:
        return [*self._columns("min", "max")]

    def _state(self) -> Iterator[tuple[str, str]]:
        """The columns that a group keeps beside its own, with their types."""
        for number, column in self._columns("count", "sum", "avg", "min", "max"):
            if column.place is None:
                continue
            kind = self._types[f"o{column.place}"]
            if column.function in ("min", "max"):
                yield f"m{number}", kind
            else:
                yield f"n{number}", "HUGEINT"
                if column.function != "count":
                    yield f"s{number}", _sum_type(kind, column.name)

    def _names(self) -> Iterator[str]:
        yield GROUP
        yield from (f"o{place}" for place in range(self._aggregation.groups))
        yield "row_count"
        yield from (name for name, _ in self._state())

    def _counted(self, table: str, weight: str, where: str, more: list[str] | None = None) -> str:
        """SQL of the groups of a table of weighted rows."""
        items = [GROUP, *(f"any_value(o{p}) AS o{p}" for p in range(self._aggregation.groups))]
        items.append(f"sum({weight})::HUGEINT AS row_count")
        for number, column in self._columns("count", "sum", "avg", "min", "max"):
            if column.place is None:
                continue
            name = f"o{column.place}"
            if column.function in ("min", "max"):
                items.append(f"{column.function}({name}) FILTER ({weight} > 0) AS m{number}")
                continue
            items.append(f"coalesce(sum({weight}) FILTER ({name} IS NOT NULL), 0)::HUGEINT AS n{number}")
            if column.function != "count":
                kind = _sum_type(self._types[name], column.name)
                value = _weighted(name, self._types[name], weight)
                items.append(f"coalesce(sum({value}), 0)::{kind} AS s{number}")
        return f"SELECT {', '.join([*items, *(more or [])])} FROM {table} WHERE {where} GROUP BY {GROUP}"

    def _must_recount(self) -> str:
        conditions = [
            f"m.left{number} {'<=' if column.function == 'min' else '>='} g.m{number}"
            for number, column in self._extremes()
        ]
        if any(kind == "DOUBLE" and name.startswith("s") for name, kind in self._state()):
            conditions.append("true")
        return " OR ".join(conditions) or "false"

    def _added(self) -> Iterator[str]:
        """A group's new values from its old ones, if there are any, and what moved."""
        yield f"m.{GROUP}"
        yield from (f"m.o{place}" for place in range(self._aggregation.groups))
        yield "m.row_count + coalesce(g.row_count, 0) AS row_count"
        extremes = {f"m{number}": column.function for number, column in self._extremes()}
        for name, kind in self._state():
            if name in extremes:
                least = "least" if extremes[name] == "min" else "greatest"
                yield f"{least}(m.{name}, g.{name}) AS {name}"
            else:
                yield f"(m.{name} + coalesce(g.{name}, 0))::{kind} AS {name}"

    def _result(self) -> str:
        """SQL of the view to read."""
        items = []
        for number, column in enumerate(self._aggregation.columns):
            if column.function == "group":
                value = f"o{column.place}"
            elif column.place is None:
                value = "coalesce(row_count, 0)::BIGINT"
            elif column.function == "count":
                value = f"coalesce(n{number}, 0)::BIGINT"
            elif column.function == "sum":
                value = f"CASE WHEN n{number} > 0 THEN s{number} END"
            elif column.function == "avg":
                value = f"CASE WHEN n{number} > 0 THEN s{number}::DOUBLE / n{number}::DOUBLE END"
            else:
                value = f"m{number}"
            items.append(f"{value} AS {quoted(column.name)}")
        source = "group_rows" if self._aggregation.groups else "(SELECT 1) LEFT JOIN group_rows ON true"
        return f"SELECT {', '.join(items)} FROM {source}"


def _sum_type(kind: str, column: str) -> str:
    """The type in which values of this type are summed."""
    if kind in ("DOUBLE", "FLOAT"):
        return "DOUBLE"
    if kind.startswith("DECIMAL"):
        width, scale = (int(part) for part in kind.removeprefix("DECIMAL(").rstrip(")").split(","))
        if width + _WEIGHT_DIGITS > _WIDEST:
            raise ViewError(
                f"{column} sums {kind}, which has more than {_WIDEST - _WEIGHT_DIGITS} digits; "
                "make the column narrower in a view of the source"
            )
        return f"DECIMAL({_WIDEST},{scale})"
    if "INT" in kind:
        return "HUGEINT"
    raise ViewError(f"{column} sums values of type {kind}, which are not numbers; cast it to a number")


def _weighted(name: str, kind: str, weight: str) -> str:
    """A value times how often it occurs."""
    if kind.startswith("DECIMAL"):
        return f"{name} * {weight}::DECIMAL({_WEIGHT_DIGITS},0)"
    return f"{name} * {weight}" if kind in ("DOUBLE", "FLOAT") else f"{name}::HUGEINT * {weight}"
