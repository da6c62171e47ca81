"""Types of the values that state carries, and which of them it can carry: those whose Arrow form is the value
itself.

Types are admitted, not excluded. A variant or a geometry would cross the wire as a struct of its bytes and
come out as that struct, and an interval of months has no Arrow form; the user casts such a value in the view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from spillway.errors import ViewError
from spillway.model import nested_parts
from spillway.plan.expression import arrow_type
from spillway.plan.operators import InputPlan

_CARRIED = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string( collate .+)?|"
    r"(var)?char\(\d+\)|binary|date|timestamp|timestamp_ntz|time\(\d+\)|interval (day|hour|minute|second).*"
)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a value that state carries."""

    spark: str
    """As Spark writes it: `array<int>`."""
    arrow: pa.DataType
    leaves: tuple[str, ...]
    """The types inside that are not nested: of `map<int,array<string>>`, int and string."""


@dataclass(frozen=True, slots=True)
class InputTypes:
    """One input of a plan: the Spark types of its key parts, and the types of its state columns."""

    keys: tuple[str, ...]
    columns: tuple[ColumnType, ...]


def check_carried(input_: InputPlan, types: InputTypes) -> None:
    """Refuse a state column of a type that state cannot carry."""
    for column, kind in zip(input_.columns, types.columns, strict=True):
        if kind.spark == "void":
            raise ViewError(f"{input_.name}.{column.label} has no type (NULL); cast it to one")
        for leaf in kind.leaves:
            if not _CARRIED.fullmatch(leaf):
                raise ViewError(
                    f"{input_.name}.{column.label} is {kind.spark}, and a view cannot carry {leaf}; "
                    "cast it in the view, to string for example, or leave it out"
                )


def column_type(text: str) -> ColumnType | None:
    """The type that Spark writes as `text`; None for one that is not known here."""
    arrow = _arrow(text)
    return None if arrow is None else ColumnType(text, arrow, tuple(_leaves(text)))


def _arrow(text: str) -> pa.DataType | None:
    nested = nested_parts(text)
    if nested is None:
        try:
            return arrow_type(text)
        except ValueError:
            return None  # a decimal of more than 38 digits
    kind, parts = nested
    types = [_arrow(part) for _, part in parts]
    if any(part is None for part in types):
        return None
    if kind == "struct":
        return pa.struct([(name, part) for (name, _), part in zip(parts, types, strict=True)])
    return pa.list_(types[0]) if kind == "array" else pa.map_(*types)


def _leaves(text: str) -> Iterator[str]:
    nested = nested_parts(text)
    if nested is None:
        yield text
        return
    for _, part in nested[1]:
        yield from _leaves(part)
