"""Expressions as values: their nodes, their types, and their evaluation over Arrow columns.

Contract: `evaluate` gives what Spark SQL gives, checked against DuckDB and Spark; null in, null out. Start
with `nodes`; `evaluation` is a match over them. A new function is one entry there and one in `types`.
"""

from spillway.plan.expression.evaluation import Columns, Labels, evaluate, result_type
from spillway.plan.expression.nodes import Call, Cast, ColumnRef, Expression, Literal, describe, references
from spillway.plan.expression.statistic_types import STATISTICS, check_order, statistic_type
from spillway.plan.expression.strings import like_regex
from spillway.plan.expression.temporal import INTERVAL_UNITS, PARTS
from spillway.plan.expression.types import arrow_type, promote, spark_type

__all__ = [
    "INTERVAL_UNITS",
    "PARTS",
    "STATISTICS",
    "Call",
    "Cast",
    "ColumnRef",
    "Columns",
    "Expression",
    "Labels",
    "Literal",
    "arrow_type",
    "check_order",
    "describe",
    "evaluate",
    "like_regex",
    "promote",
    "references",
    "result_type",
    "spark_type",
    "statistic_type",
]
