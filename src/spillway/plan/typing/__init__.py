"""The types of a plan: keys, state columns, results. They decide which jobs are refused.

Contract: `plan_types` is pure, and `run` and `explain` both call it: with the types that Spark's analysis
finds, or with those that `read_input_types` finds without Spark. Start with `plan`.
"""

from spillway.plan.typing.column import ColumnType, InputTypes, column_type
from spillway.plan.typing.input import NeedsSparkError, read_input_types
from spillway.plan.typing.plan import PlanTypes, plan_types
from spillway.plan.typing.tree import LeafType, leaf_types, symbol_type, tree_output_types

__all__ = [
    "ColumnType",
    "InputTypes",
    "LeafType",
    "NeedsSparkError",
    "PlanTypes",
    "column_type",
    "leaf_types",
    "plan_types",
    "read_input_types",
    "symbol_type",
    "tree_output_types",
]
