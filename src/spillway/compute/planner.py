"""Chooses the plan of a computation from the view, statistics, resources, configuration and earlier runs.

Pure: the same facts give the same plan. If the user asked for a tree or set a memory limit, a tree always
runs: by columns if tasks can join them, else as statements. Otherwise a tree must promise a clear gain over
Spark's own plan (see `way`). Trees for statements are searched only if columns are not taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from spillway.compute.compute_view import ComputeView
from spillway.compute.config import SPARK_PLAN, ComputeConfig
from spillway.compute.cost import Machine, TreeCost
from spillway.compute.graph_builder import build_graph
from spillway.compute.plan import ComputePlan
from spillway.compute.sketch import RelationStatistics
from spillway.compute.tree import Segment, mask_of_input, steps
from spillway.compute.trees import choose
from spillway.compute.unit_costs import UnitCosts
from spillway.compute.way import COLUMNS, SPARK, STATEMENTS, decide, joined_on_several_keys, spark_seconds
from spillway.errors import BudgetError

REPLICATE_BYTES = 256e6
"""Spark builds a replicated table on the driver; a larger one puts its heap at risk."""
HEAP_SHARE = 0.4
"""The share of the driver's heap for hash tables, unless a job sets the memory."""
FREE_SHARE = 0.4
"""The share of this machine's free memory for tasks that join columns, unless a job sets the memory."""
MOST_LOOKUPS = 3e8
"""Estimated rows that all joins of a tree look up; for more, compiled code is worth its compilation."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What Spark and this machine have."""

    processors: int
    heap_bytes: float
    free_bytes: float
    table_page_bytes: float = 0.0
    """The least that a hash table takes; see `Machine`."""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """All that the choice depends on."""

    view: ComputeView
    statistics: Sequence[RelationStatistics]
    resources: Resources
    config: ComputeConfig = field(default_factory=ComputeConfig)
    guessed: tuple[str, ...] = ()
    """Relations whose statistics are a guess."""
    can_join_columns: bool = False
    """Whether tasks can read all relations themselves."""
    units: UnitCosts | None = None
    memory_factors: Mapping[str, float] = field(default_factory=dict)
    """By way: the memory that the last run measured, over the estimate."""


def choose_plan(facts: PlanFacts, *, columns_failed: str | None = None) -> ComputePlan:
    """The plan to run. `columns_failed` says why a run by columns stopped: then a tree runs as statements."""
    cost = _statement_cost(facts)
    if facts.config.way == SPARK_PLAN:
        return replace(_candidate(facts, STATEMENTS, cost, cost), way=SPARK, reason="asked for")
    columns, refusals = _columns(facts, cost, columns_failed)
    if facts.config.needs_tree or columns_failed is not None:
        if columns is not None:
            return replace(columns, reason="a tree or a memory limit was given, and tasks can join columns")
        plan = _candidate(facts, STATEMENTS, cost, cost)
        _check_budget(plan, facts.config.memory_bytes)
        return replace(plan, reason=refusals[COLUMNS], refusals=refusals)
    if columns is not None:
        choice = decide({COLUMNS: columns.proposal.seconds}, columns.spark_seconds, refusals)
        if choice.way == COLUMNS:
            return replace(columns, reason=choice.reason)
    plan = _candidate(facts, STATEMENTS, cost, cost)
    seconds = {STATEMENTS: spark_seconds(cost, plan.tree)}
    refusal = _statements_refusal(facts, cost)
    if refusal is not None:
        seconds, refusals[STATEMENTS] = {}, refusal
    choice = decide(seconds, plan.spark_seconds, refusals)
    return replace(plan, way=choice.way, reason=choice.reason, refusals=refusals)


def _statement_cost(facts: PlanFacts) -> TreeCost:
    """The costs of trees that run as statements."""
    config, resources = facts.config, facts.resources
    memory = config.memory_bytes or resources.heap_bytes * HEAP_SHARE
    machine = Machine(
        processors=config.processors or resources.processors,
        memory_bytes=memory,
        replicate_bytes=min(REPLICATE_BYTES, memory),
        table_page_bytes=resources.table_page_bytes,
        table_factor=facts.memory_factors.get(STATEMENTS, 1.0),
    )
    graph = build_graph(facts.view, facts.statistics, rows=config.rows, selectivities=config.selectivity)
    return TreeCost(graph, facts.units, machine)


def _candidate(facts: PlanFacts, way: str, cost: TreeCost, statements: TreeCost) -> ComputePlan:
    """The best tree of a way, as a plan that has no reason yet."""
    return ComputePlan(
        view=facts.view,
        way=way,
        reason="",
        proposal=choose(cost, facts.config.tree),
        cost=cost,
        statements=statements,
        spark_seconds=spark_seconds(statements),
        column_limit_bytes=facts.config.memory_bytes or facts.resources.free_bytes * FREE_SHARE,
        column_factor=facts.memory_factors.get(COLUMNS, 1.0),
    )


def _columns(
    facts: PlanFacts, statements: TreeCost, failed: str | None
) -> tuple[ComputePlan | None, dict[str, str]]:
    """The best plan by columns, or None and why not."""
    if failed is not None:
        return None, {COLUMNS: f"columns: {failed}"}
    if not facts.can_join_columns:
        return None, {COLUMNS: "columns: not all relations are plain local Parquet files with integer keys"}
    machine = replace(statements.machine, by_columns=True, replicate_bytes=inf, memory_bytes=None)
    cost = TreeCost(statements.graph, facts.units, machine)
    plan = _candidate(facts, COLUMNS, cost, statements)
    if _lookups(cost, plan.tree) > MOST_LOOKUPS:
        return None, {COLUMNS: "columns: too many rows for tasks in Python"}
    needed, limit = plan.needed_bytes(), plan.column_limit_bytes
    if limit is not None and needed > limit:
        return None, {COLUMNS: f"columns: tasks need about {needed / 1e6:.1f} MB of {limit / 1e6:.1f} MB"}
    return plan, {}


def _lookups(cost: TreeCost, tree: Segment) -> float:
    """Rows that all joins of a tree look up, and the pairs that are compared where several keys join."""
    found = 0.0
    for segment in tree.segments():
        for step in steps(cost.graph, segment):
            build = mask_of_input(step.build)
            found += cost.cardinality.rows(step.before)
            if len(step.classes) > 1:
                best = cost.cardinality.by_matches(step.classes, step.before, build)[0]
                found += cost.cardinality.matches(best, step.before, build)
    return found


def _statements_refusal(facts: PlanFacts, cost: TreeCost) -> str | None:
    """Why estimates are too uncertain to prefer statements to Spark's own plan."""
    if facts.guessed:
        return (
            f"{', '.join(facts.guessed)} are not local Parquet files: reading their rows for statistics "
            'takes longer than it may save (way = "tree" does so)'
        )
    if (pair := joined_on_several_keys(cost.graph)) is not None:
        return f"several keys join {pair[0]} and {pair[1]}, and how these depend on each other is not known"
    return None


def _check_budget(plan: ComputePlan, memory_bytes: int | None) -> None:
    """Refuse a memory limit that no tree of statements can keep."""
    needed = plan.needed_bytes()
    if memory_bytes is not None and needed > memory_bytes:
        raise BudgetError(
            f"[compute] memory = {memory_bytes / 1e6:.1f} MB is too small: hash tables need about "
            f"{needed / 1e6:.1f} MB at a time; give at least that, or leave memory out"
        )
