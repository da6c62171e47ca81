"""The rules that turn a view into a plan: which columns are state, which equality is the key, which tree.

Contract: `plan_view` is the only way in; it returns a plan, or refuses the view and says what to write
instead. Start with `planner`; `tree_planner` and `frame_planner` are the other kinds of views.
"""

from spillway.plan.rules.equality_graph import equality_classes
from spillway.plan.rules.input_statistics import AskedInput, InputStatistics, NoStatistics, Statistics
from spillway.plan.rules.planner import Plan, plan_view
from spillway.plan.rules.source_expression import SourceExpression, read_source_expression
from spillway.plan.rules.source_types import source_type

__all__ = [
    "AskedInput",
    "InputStatistics",
    "NoStatistics",
    "Plan",
    "SourceExpression",
    "Statistics",
    "equality_classes",
    "plan_view",
    "read_source_expression",
    "source_type",
]
