"""Result columns of a plan, from the items of a select list."""

from __future__ import annotations

from spillway.errors import ViewError
from spillway.plan.expression import Literal
from spillway.plan.operators import OutputColumn
from spillway.plan.rules.lower import Lowering
from spillway.plan.sql import SelectItem


def output_column(item: SelectItem, lowering: Lowering) -> OutputColumn:
    """The column of the plan's result that a select item stands for."""
    value = lowering.lower(item.node)
    if isinstance(value, Literal) and value.type == "void":
        raise ViewError(
            f"result column {item.name} is NULL of no type; write CAST(NULL AS string) AS {item.name}"
        )
    return OutputColumn(item.name, value)
