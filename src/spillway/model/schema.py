"""Columns, catalogs, and the DDL text that describes them: `k long, p decimal(10,2), s struct<a:int>`.

Type names come out in Spark's own spelling (`bigint`, not `long`), so two spellings of one type compare
equal. Known limit: column comments, defaults and NOT NULL are read and dropped; a view never depends on
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spillway.errors import ViewError


@dataclass(frozen=True, slots=True)
class Column:
    """A source's column; `type` is in Spark DDL form."""

    name: str
    type: str
    lateness_us: int | None = None
    """Of the column that holds the event time: how late a row may be; None for all others."""


Catalog = Mapping[str, tuple[Column, ...]]
"""Source name to its columns."""

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*')|([^\W]\w*)|([<>(),:]))")
_SAME = {
    "long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "real": "float",
    "dec": "decimal", "numeric": "decimal", "character": "char", "timestamp_ltz": "timestamp",
}  # fmt: skip
_SIMPLE = frozenset({
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary",
    "date", "timestamp", "timestamp_ntz", "void", "variant",
})  # fmt: skip
_NESTED = re.compile(r"(array|map|struct)<(.*)>", re.DOTALL)
_INTERVAL_UNITS = ("year", "month", "day", "hour", "minute", "second")


def parse_ddl(text: str, *, distinct: bool = True) -> tuple[Column, ...]:
    """The columns that `text` declares, with normalised type names; `distinct`: refuse a name twice."""
    parser = _Parser(text)
    columns = parser.fields(end=None)
    if not columns:
        raise ViewError(f"schema {text!r} declares no column; write for example 'k long, p string'")
    seen: set[str] = set()
    for column in columns if distinct else ():
        if column.name.lower() in seen:
            raise ViewError(f"schema {text!r} declares column {column.name} twice; names ignore case")
        seen.add(column.name.lower())
    return columns


def normalise_type(text: str) -> str:
    """One type in Spark's own spelling: `LONG` gives `bigint`, `struct<a: integer>` gives `struct<a:int>`."""
    parser = _Parser(text)
    kind = parser.type()
    if parser.peek() is not None:
        raise parser.error(f"unexpected {parser.peek()!r}")
    return kind


def nested_parts(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The kind of a nested type, and name and type of each part; only fields of structs have names.

    None for a type that is not nested, and for one with quoted names, which are not read here.
    """
    nested = _NESTED.fullmatch(text)
    if nested is None or "`" in text:
        return None
    parts, depth = [""], 0
    for character in nested[2]:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    if nested[1] != "struct":
        return nested[1], tuple(("", part) for part in parts)
    fields = (part.partition(":") for part in parts if part)
    return "struct", tuple((name, kind) for name, _, kind in fields)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._next = 0
        position, stripped = 0, text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise self.error(f"unexpected {stripped[position:].split()[0]!r}")
            self._tokens.append(match.group(match.lastindex or 0))
            position = match.end()

    def error(self, problem: str) -> ViewError:
        return ViewError(f"bad schema {self._text!r}: {problem}; write for example 'k long, p decimal(10,2)'")

    def peek(self) -> str | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def take(self) -> str:
        token = self.peek()
        if token is None:
            raise self.error("it ends too early")
        self._next += 1
        return token

    def accept(self, word: str) -> bool:
        token = self.peek()
        if token is None or token.lower() != word:
            return False
        self._next += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"expected {word!r} before {self.peek() or 'the end'!r}")

    def fields(self, end: str | None) -> tuple[Column, ...]:
        columns: list[Column] = []
        while self.peek() != end:
            if columns:
                self.expect(",")
            name = self._name()
            self.accept(":")
            columns.append(Column(name, self.type()))
            if self.accept("not"):
                self.expect("null")
            if self.accept("comment") and not self.take().startswith("'"):
                raise self.error("a comment is a quoted string")
        return tuple(columns)

    def type(self) -> str:
        word = self.take().lower()
        kind = _SAME.get(word, word)
        if kind == "array":
            self.expect("<")
            element = self.type()
            self.expect(">")
            return f"array<{element}>"
        if kind == "map":
            self.expect("<")
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(">")
            return f"map<{key},{value}>"
        if kind == "struct":
            self.expect("<")
            inner = ",".join(f"{_quoted(field.name)}:{field.type}" for field in self.fields(end=">"))
            self.expect(">")
            return f"struct<{inner}>"
        if kind == "decimal":
            return self._decimal()
        if kind in ("char", "varchar"):
            (length,) = self._numbers(1)
            return f"{kind}({length})"
        if kind == "interval":
            return self._interval()
        if kind == "string" and self.accept("collate"):
            return f"string collate {self.take()}"
        if kind not in _SIMPLE:
            raise self.error(f"unknown type {word!r}")
        return kind

    def _decimal(self) -> str:
        numbers = self._numbers(2) if self.peek() == "(" else [10]
        precision, scale = (*numbers, 0)[:2]
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise self.error(f"decimal({precision},{scale}) is outside decimal(38,38)")
        return f"decimal({precision},{scale})"

    def _interval(self) -> str:
        units: list[str] = []
        while (self.peek() or "").lower() in _INTERVAL_UNITS:
            units.append(self.take().lower())
            if not self.accept("to"):
                break
        return " ".join(("interval", " to ".join(units))).strip()

    def _numbers(self, most: int) -> list[int]:
        self.expect("(")
        numbers: list[int] = []
        while True:
            token = self.take()
            if not token.isdigit() or len(numbers) == most:
                raise self.error(f"unexpected {token!r} in a type")
            numbers.append(int(token))
            if self.accept(")"):
                return numbers
            self.expect(",")

    def _name(self) -> str:
        token = self.take()
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if token[0] in "<>(),:'":
            raise self.error(f"expected a column name before {token!r}")
        return token


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else "`" + name.replace("`", "``") + "`"
