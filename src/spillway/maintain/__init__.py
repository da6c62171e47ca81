"""Maintaining a stored join view while its distributed sources change (dissertation, chapters 9 to 11).

Contract: after a round the stored view is the definition over the sources at the round's positions. Start
with `view_manager`, then `plan` and `execute`; `strategies` make plans, `search` looks for cheap ones,
`sources` are the databases.
"""

from spillway.maintain.algebra import AlgebraBySize, canonical, comparable, consolidate, negated, weighted
from spillway.maintain.calibration import calibrate
from spillway.maintain.choice import CostChoice, FixedChoice, PlanChooser, choose_by_name
from spillway.maintain.continuous import lag_metrics, run_rounds
from spillway.maintain.definition import ViewDefinition, define_view, wide
from spillway.maintain.delta import WEIGHT, delta_schema, row_schema
from spillway.maintain.execute import Answer
from spillway.maintain.explain import explain_dict, explain_text
from spillway.maintain.graph import Edge, ViewGraph
from spillway.maintain.maintenance import (
    Backend,
    Maintenance,
    current_costs,
    open_maintenance,
    open_sources,
)
from spillway.maintain.plan import RECOMPUTE, MaintenancePlan
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.regression import CostFunction, CostSample, fit
from spillway.maintain.round_report import FailedRoundEntry, RoundEntry, RoundReport
from spillway.maintain.settings import AUTO, KINDS, SPARK, MaintainJob, ServerSpec, TableLocation
from spillway.maintain.unify import KeySet
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore

__all__ = [
    "AUTO",
    "KINDS",
    "RECOMPUTE",
    "SPARK",
    "WEIGHT",
    "AlgebraBySize",
    "Answer",
    "Backend",
    "CostChoice",
    "CostFunction",
    "CostSample",
    "Edge",
    "FailedRoundEntry",
    "FixedChoice",
    "KeySet",
    "MaintainJob",
    "Maintenance",
    "MaintenancePlan",
    "PlanChooser",
    "QueryCost",
    "RoundEntry",
    "RoundReport",
    "ServerSpec",
    "TableLocation",
    "ViewDefinition",
    "ViewGraph",
    "ViewManager",
    "ViewStore",
    "calibrate",
    "canonical",
    "choose_by_name",
    "comparable",
    "consolidate",
    "current_costs",
    "define_view",
    "delta_schema",
    "explain_dict",
    "explain_text",
    "fit",
    "lag_metrics",
    "negated",
    "open_maintenance",
    "open_sources",
    "row_schema",
    "run_rounds",
    "weighted",
    "wide",
]
