"""Computing a view over stored relations: join graph, cardinalities, cost model, trees, allocation. All pure.

After part I of the dissertation of 2005 (chapters 2 and 3). `spillway.spark.compute` runs what is chosen.
Start with `planner`, then `cost`; `trees` has the shapes.
"""

from spillway.compute.columnar import (
    ColumnarJoin,
    ColumnMemoryError,
    ShareOfJoin,
    StoredRelation,
    column_bytes,
)
from spillway.compute.compute_view import ComputeView, ReadRelation, read_view
from spillway.compute.config import ComputeConfig
from spillway.compute.cost import Machine, TreeCost
from spillway.compute.explain import draw_text, q_error, tree_report
from spillway.compute.file_statistics import Footers, ParquetRelation
from spillway.compute.fuse import kept_segments, resident_bytes, statement
from spillway.compute.graph_builder import build_graph
from spillway.compute.join_graph import JoinGraph, JoinKey, Relation, members_of
from spillway.compute.plan import ComputePlan
from spillway.compute.planner import PlanFacts, Resources, choose_plan
from spillway.compute.sketch import BUCKETS, SLOT_BYTES, KeySketch, RelationStatistics
from spillway.compute.tree import Input, ProbeStep, Segment, mask_of_input, steps
from spillway.compute.unit_costs import UnitCosts
from spillway.compute.way import (
    COLUMNS,
    SPARK,
    STATEMENTS,
    WayChoice,
    decide,
    expected_seconds,
    joined_on_several_keys,
    spark_seconds,
    statistics_seconds,
)

__all__ = [
    "BUCKETS",
    "COLUMNS",
    "SLOT_BYTES",
    "SPARK",
    "STATEMENTS",
    "ColumnMemoryError",
    "ColumnarJoin",
    "ComputeConfig",
    "ComputePlan",
    "ComputeView",
    "Footers",
    "Input",
    "JoinGraph",
    "JoinKey",
    "KeySketch",
    "Machine",
    "ParquetRelation",
    "PlanFacts",
    "ProbeStep",
    "ReadRelation",
    "Relation",
    "RelationStatistics",
    "Resources",
    "Segment",
    "ShareOfJoin",
    "StoredRelation",
    "TreeCost",
    "UnitCosts",
    "WayChoice",
    "build_graph",
    "choose_plan",
    "column_bytes",
    "decide",
    "draw_text",
    "expected_seconds",
    "joined_on_several_keys",
    "kept_segments",
    "mask_of_input",
    "members_of",
    "q_error",
    "read_view",
    "resident_bytes",
    "spark_seconds",
    "statement",
    "statistics_seconds",
    "steps",
    "tree_report",
]
