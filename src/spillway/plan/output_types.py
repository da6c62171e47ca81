"""The Arrow types of a plan's result, once Spark has told the types of its state columns.

The planner checks what the catalog tells; this is the same check with every type known, before any row is
read.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from spillway.errors import ViewError
from spillway.plan.arrow_types import spark_type
from spillway.plan.evaluate import result_type
from spillway.plan.expression import ColumnRef, describe
from spillway.plan.join_plan import JoinPlan


def output_types(plan: JoinPlan, types: Callable[[ColumnRef], pa.DataType]) -> tuple[pa.DataType, ...]:
    """The type of each output; refused when an expression or the residual does not fit its columns."""
    if plan.residual is not None and not pa.types.is_boolean(kind := result_type(plan.residual, types)):
        shown = describe(plan.residual, plan.column_label)
        raise ViewError(f"{shown} is {spark_type(kind)}, and a condition is boolean; write a comparison")
    return tuple(
        types(output.value) if isinstance(output.value, ColumnRef) else result_type(output.value, types)
        for output in plan.outputs
    )
