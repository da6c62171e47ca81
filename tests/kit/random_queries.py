"""Random statements of SELECT, inner joins, WITH, derived tables and UNION ALL, and random rows for them.

Names come from small pools, so that inner and outer names, aliases and sources clash wherever SQL allows it.
Every statement means the same in Spark and DuckDB. A source has few rows and many nulls; a statement reads
at most `_MOST_SOURCES` of them, so that joins without a condition stay small.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import duckdb

from spillway.model.schema import Column, parse_ddl

CATALOG: dict[str, tuple[Column, ...]] = {
    "a": parse_ddl("x bigint, y bigint, s string"),
    "b": parse_ddl("x bigint, z bigint, s string"),
    "c": parse_ddl("x bigint, z bigint, w bigint"),
    "d": parse_ddl("x int, q decimal(6,2), f double, s string"),
}
_NAMES = ("x", "y", "z", "s", "k", "v", "w", "a", "t")
_ALIASES = ("a", "b", "c", "d", "t", "u", "v", "n")
_MOST_SOURCES = 5
_DEPTH = 3
_NUMBERS = ("bigint", "int", "decimal(6,2)", "double")
_WORDS = ("", "a", "ab", "A", "b")

Columns = list[tuple[str, str]]
"""Name and type."""


@dataclass(frozen=True, slots=True)
class Input:
    """One part of FROM."""

    text: str
    alias: str
    columns: Columns


class RandomQuery:
    """One statement, `sql`. `unions`: with UNION ALL; `joins`: its outermost SELECT has several inputs."""

    def __init__(self, seed: Random, *, unions: bool = True, joins: bool = False) -> None:
        self._seed = seed
        self._unions = unions
        self._least = 2 if joins else 1
        self._sources = 0
        self.sql, self.columns = self._query(_DEPTH, {})

    def _query(self, depth: int, named: Mapping[str, Columns]) -> tuple[str, Columns]:
        seed, prefix = self._seed, ""
        if depth and seed.random() < 0.35:
            named, queries = dict(named), []
            for name in seed.sample(_ALIASES, seed.randint(1, 2)):
                text, columns = self._query(depth - 1, named)
                given, columns = self._column_list(columns)
                queries.append(f"{name}{given} AS ({text})")
                named[name] = columns
            prefix = f"WITH {', '.join(queries)} "
        if depth and self._unions and seed.random() < 0.25:
            text, columns = self._union(depth - 1, named)
        else:
            text, columns = self._select(depth, named)
        return prefix + text, columns

    def _union(self, depth: int, named: Mapping[str, Columns]) -> tuple[str, Columns]:
        """Branches with as many columns as the first, numbers beside numbers and words beside words."""
        text, columns = self._select(depth, named)
        for _ in range(self._seed.randint(1, 2)):
            branch, own = self._query(depth, named)
            items = []
            for _, kind in columns:
                fitting = [n for n, k in own if (k in _NUMBERS) == (kind in _NUMBERS)]
                constant = "1" if kind in _NUMBERS else "'a'"
                items.append(f"{self._seed.choice(fitting) if fitting else constant}")
            alias = self._seed.choice(_ALIASES)
            branch = f"SELECT {', '.join(items)} FROM ({branch}) {alias}"
            text += f" UNION ALL {f'({branch})' if self._seed.random() < 0.4 else branch}"
        return text, [(name, "double" if kind in _NUMBERS else kind) for name, kind in columns]

    def _input(self, depth: int, named: Mapping[str, Columns], taken: set[str]) -> Input:
        seed = self._seed
        free = [alias for alias in _ALIASES if alias not in taken]
        if depth and self._sources < _MOST_SOURCES and seed.random() < 0.5:
            text, columns = self._query(depth - 1, named)
            given, columns = self._column_list(columns)
            alias = seed.choice(free)
            return Input(f"({text}) {seed.choice(('', 'AS '))}{alias}{given}", alias, columns)
        self._sources += 1
        known = {**{name: [(c.name, c.type) for c in own] for name, own in CATALOG.items()}, **named}
        name = seed.choice([*known, *named])
        if name not in taken and seed.random() < 0.5:
            return Input(name, name, known[name])
        alias = seed.choice(free)
        return Input(f"{name} {alias}", alias, known[name])

    def _column_list(self, columns: Columns) -> tuple[str, Columns]:
        if self._seed.random() < 0.75:
            return "", columns
        names = self._seed.sample([*_NAMES, *(f"n{n}" for n in range(len(columns)))], len(columns))
        return f" ({', '.join(names)})", [(n, kind) for n, (_, kind) in zip(names, columns, strict=True)]

    def _select(self, depth: int, named: Mapping[str, Columns]) -> tuple[str, Columns]:
        seed = self._seed
        inputs: list[Input] = []
        text = ""
        conditions: list[str] = []
        least = self._least if depth == _DEPTH else 1
        most = max(least, min(3, _MOST_SOURCES - self._sources))
        for number in range(seed.randint(least, most)):
            inputs.append(self._input(depth, named, {part.alias for part in inputs}))
            text, condition = self._joined(text, inputs, number)
            conditions += condition
        values = [(f"{part.alias}.{name}", kind) for part in inputs for name, kind in part.columns]
        conditions += [self._condition(values) for _ in range(seed.choice((0, 1, 1, 2)))]
        seed.shuffle(conditions)
        items, columns = self._items(inputs, values)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {items} FROM {text}{where}", columns

    def _joined(self, text: str, inputs: list[Input], number: int) -> tuple[str, list[str]]:
        seed, new = self._seed, inputs[-1]
        if not number:
            return new.text, []
        other = seed.choice(inputs[:-1])
        shared = [
            name
            for name, kind in new.columns
            if kind in _NUMBERS
            and sum(name == n for part in inputs[:-1] for n, _ in part.columns) == 1
            and any(name == n and k in _NUMBERS for part in inputs[:-1] for n, k in part.columns)
        ]
        if shared and len(inputs) == 2 and seed.random() < 0.2:
            return f"{text} JOIN {new.text} ON {inputs[0].alias}.{shared[0]} = {new.alias}.{shared[0]}", []
        pairs = [
            f"{other.alias}.{n} = {new.alias}.{m}"
            for n, kind in other.columns
            for m, k in new.columns
            if k == kind or {k, kind} <= {"int", "bigint"}
        ]
        condition = seed.choice(pairs) if pairs else None
        if condition is None:
            return f"{text} CROSS JOIN {new.text}", []
        if seed.random() < 0.5:
            return f"{text}, {new.text}", [condition]
        return f"{text} JOIN {new.text} ON {condition}", []

    def _items(self, inputs: list[Input], values: Columns) -> tuple[str, Columns]:
        seed = self._seed
        names = [name for part in inputs for name, _ in part.columns]
        if seed.random() < 0.2 and len(set(names)) == len(names):
            return "*", [column for part in inputs for column in part.columns]
        if seed.random() < 0.1:
            part = seed.choice(inputs)
            return f"{part.alias}.*", part.columns
        free = seed.sample(_NAMES, seed.randint(1, 3))
        made = [self._value(values) for _ in free]
        return ", ".join(f"{text} AS {name}" for name, (text, _) in zip(free, made, strict=True)), [
            (name, kind) for name, (_, kind) in zip(free, made, strict=True)
        ]

    def _value(self, values: Columns) -> tuple[str, str]:
        seed = self._seed
        column, kind = seed.choice(values)
        if kind == "string":
            other = self._like(values, ("string",)) or "'b'"
            return seed.choice(
                [
                    (column, kind),
                    (f"coalesce({column}, {other})", kind),
                    (f"upper({column})", kind),
                    (f"CASE WHEN {self._condition(values)} THEN {column} ELSE {other} END", kind),
                    ("'a'", kind),
                ]
            )
        if kind != "bigint":
            return column, kind
        other = self._like(values, ("bigint",)) or "2"
        return seed.choice(
            [
                (column, kind),
                (column, kind),
                (f"{column} + {other}", kind),
                (f"{column} * 2 - {other}", kind),
                (f"coalesce({column}, {other})", kind),
                (f"CASE WHEN {self._condition(values)} THEN {column} ELSE {other} END", kind),
                ("1", "int"),
            ]
        )

    def _like(self, values: Columns, kinds: tuple[str, ...]) -> str | None:
        fitting = [text for text, kind in values if kind in kinds]
        return self._seed.choice(fitting) if fitting else None

    def _condition(self, values: Columns, depth: int = 2) -> str:
        seed = self._seed
        if depth and seed.random() < 0.35:
            parts = [self._condition(values, depth - 1) for _ in range(3)]
            return seed.choice(
                [
                    f"({parts[0]} OR {parts[1]})",
                    f"({parts[0]} AND {parts[1]} OR {parts[0]} AND {parts[2]})",
                    f"(({parts[1]}) AND ({parts[0]}) OR {parts[0]})",
                    f"({parts[0]} AND {parts[1]} OR {parts[2]})",
                    f"NOT ({parts[0]} AND {parts[1]})",
                ]
            )
        column, kind = seed.choice(values)
        if kind == "string":
            other = self._like(values, ("string",)) or "'a'"
            return seed.choice(
                [f"{column} LIKE 'a%'", f"{column} IS NOT NULL", f"{column} = {other}", f"{column} <> 'b'"]
            )
        other = self._like(values, ("bigint", "int")) or "1"
        return seed.choice(
            [
                f"{column} > 1",
                f"{column} <= {other}",
                f"{column} + 1 <> {other}",
                f"{column} IS NULL",
                f"{column} IN (0, 2, 3)",
                f"{column} BETWEEN 0 AND {other}",
            ]
        )


def fill(database: duckdb.DuckDBPyConnection, seed: Random) -> None:
    """Few rows for each source of `CATALOG`, a third of all values null, in place of those that are there."""
    for source, columns in CATALOG.items():
        database.execute(f"DELETE FROM {source}")
        marks = ", ".join("?" for _ in columns)
        for _ in range(seed.randint(0, 6)):
            row = [_random_value(seed, column.type) for column in columns]
            database.execute(f"INSERT INTO {source} VALUES ({marks})", row)


def _random_value(seed: Random, kind: str) -> Any:
    if seed.random() < 0.3:
        return None
    return seed.choice(_WORDS) if kind == "string" else seed.randint(0, 3)
