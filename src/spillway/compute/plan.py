"""The plan of a computation: the way, the tree with its costs, and the memory that it needs. A value.

`planner` chooses it, `spillway.spark.compute` runs it. Invariant: `cost` is the cost model of the way, and
the tree was chosen by it. If the way is Spark's own plan, the tree is the one that would run otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spillway.compute.columnar import column_bytes
from spillway.compute.compute_view import ComputeView
from spillway.compute.cost import TreeCost
from spillway.compute.explain import MeasuredSegments, tree_report
from spillway.compute.fuse import resident_bytes
from spillway.compute.tree import Segment
from spillway.compute.trees import Proposal, proposal_of
from spillway.compute.way import COLUMNS, STATEMENTS

GIVEN = "given"


@dataclass(frozen=True, slots=True)
class ComputePlan:
    view: ComputeView
    way: str
    reason: str
    """Why this way, for the user."""
    proposal: Proposal
    cost: TreeCost
    statements: TreeCost
    """The cost model of trees that run as statements, whatever the way is."""
    spark_seconds: float
    """The estimate for Spark's own plan."""
    column_limit_bytes: float | None = None
    """What all tasks that join columns may hold together; None: no limit."""
    column_factor: float = 1.0
    """The memory of tasks that earlier runs measured, over the estimate. (For hash tables see `Machine`.)"""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """By way: why it was not taken."""

    @property
    def tree(self) -> Segment:
        return self.proposal.tree

    @property
    def algorithm(self) -> str:
        return self.proposal.algorithm

    def with_tree(self, tree: Segment, cost: TreeCost | None = None) -> ComputePlan:
        """The same view by another tree, which runs as `cost` says; tasks have no memory limit."""
        model = cost or self.cost
        return replace(
            self,
            way=COLUMNS if model.machine.by_columns else STATEMENTS,
            reason="a tree was given",
            proposal=proposal_of(model, GIVEN, tree),
            cost=model,
            column_limit_bytes=None,
        )

    def needed_bytes(self) -> float:
        """The estimated memory: of all tasks that join columns, or of hash tables that exist at a time."""
        if self.way != COLUMNS:
            return resident_bytes(self.cost, self.tree)
        keys = [dict(key.members) for key in self.view.keys]
        of_task = column_bytes(self.cost.graph, self.tree, keys)
        return of_task * self.cost.machine.processors * self.column_factor

    def learned_factor(self, measured_bytes: float) -> float | None:
        """The memory factor for the next run, from what this one measured; None if that is nothing."""
        estimated = self.needed_bytes() if measured_bytes > 0 else 0.0
        factor = self.column_factor if self.way == COLUMNS else self.cost.machine.table_factor
        return factor * measured_bytes / estimated if estimated > 0 else None

    def report(self, measured: MeasuredSegments | None = None) -> dict[str, Any]:
        """The plan as plain values, for JSON."""
        return {
            **tree_report(self.cost, self.proposal, measured),
            "way": self.way,
            "reason": self.reason,
            "estimated_spark_seconds": round(self.spark_seconds, 4),
        }
