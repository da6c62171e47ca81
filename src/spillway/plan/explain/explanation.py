"""What a plan will do, for a reader (`explain`) and for a program (`explain_dict`).

The text is made from the dictionary. Types that the plan does not know are shown as `?` until they are given.
The kind of a plan decides how it is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from spillway.plan.explain.frame import explain_aggregate
from spillway.plan.explain.join import explain_join, join_text
from spillway.plan.explain.report import PlanReport
from spillway.plan.explain.tree import explain_tree, tree_text
from spillway.plan.expression import ColumnRef
from spillway.plan.operators import AggregatePlan, JoinPlan, TreePlan


class Explained(Protocol):
    """A plan of any kind."""

    @property
    def kind(self) -> str: ...


EXPLAINERS: Mapping[str, tuple[Callable[..., PlanReport], Callable[[PlanReport], str]]] = MappingProxyType(
    {
        JoinPlan.kind: (explain_join, join_text),
        AggregatePlan.kind: (explain_aggregate, join_text),
        TreePlan.kind: (explain_tree, tree_text),
    }
)
"""Per kind of plan: its report, and that report as text."""


def explain_dict(
    plan: Explained,
    *,
    processors: int,
    groups: int,
    key_types: tuple[str, ...] | None = None,
    column_types: Mapping[ColumnRef, str] | None = None,
) -> PlanReport:
    """The plan as JSON-ready values; `key_types` and `column_types` are those of `plan.typing`."""
    report, _ = EXPLAINERS[plan.kind]
    return report(plan, processors, groups, key_types, column_types or {})


def explain(plan: Explained, *, processors: int, groups: int, **types: Any) -> str:
    """The plan as text; `types` as for `explain_dict`."""
    _, text = EXPLAINERS[plan.kind]
    return text(explain_dict(plan, processors=processors, groups=groups, **types))
