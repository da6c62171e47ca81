"""The types of an input without Spark, where the rules of `plan.rules` know all of them."""

from __future__ import annotations

from spillway.model import Column
from spillway.plan.operators import InputPlan
from spillway.plan.rules import source_type
from spillway.plan.sql import display
from spillway.plan.typing.column import InputTypes, column_type


class NeedsSparkError(Exception):
    """Only Spark can tell; the text says what."""


def read_input_types(input_: InputPlan, columns: tuple[Column, ...]) -> InputTypes:
    """The types that Spark's analysis would find over a source with these columns; it must be asked if
    `NeedsSparkError` is raised."""

    def known(sql: str) -> str:
        kind = source_type(sql, columns)
        if kind is None:
            raise NeedsSparkError(f"only Spark knows the type of {display(sql)} (input {input_.name})")
        return kind

    if input_.filter is not None and known(input_.filter) != "boolean":
        raise NeedsSparkError(f"only Spark knows whether {display(input_.filter)} is a condition")
    keys = tuple(known(key) for key in input_.keys)
    carried = []
    for column in input_.columns:
        kind = column_type(text := known(column.expression))
        if kind is None:
            raise NeedsSparkError(f"only Spark knows the type {text} of {input_.name}.{column.label}")
        carried.append(kind)
    return InputTypes(keys, tuple(carried))
