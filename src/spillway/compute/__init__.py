"""Computing a view over stored relations: join graph, cardinalities, cost model, trees, the choice of a plan.

Contract: pure, except that `file_statistics` and `columnar` read Parquet files; a plan is a value, and
`spillway.spark.compute` runs it. After part I of the dissertation of 2005 (chapters 2 and 3). Start with
`planner`, then `cost`; `trees` has the shapes.
"""

from spillway.compute.column_relations import (
    KEY_TYPES,
    can_join_columns,
    column_types,
    output_columns,
    quoted,
    stored_relations,
)
from spillway.compute.columnar import ColumnarJoin, ColumnMemoryError, ShareOfJoin, StoredRelation
from spillway.compute.compute_view import ComputeView, ReadRelation, read_view
from spillway.compute.config import WAYS, ComputeConfig
from spillway.compute.cost import Machine, TreeCost
from spillway.compute.explain import draw_text, q_error
from spillway.compute.file_statistics import Footers, ParquetRelation
from spillway.compute.fuse import kept_segments, statement
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
    expected_seconds,
    spark_seconds,
    statistics_seconds,
)

__all__ = [
    "BUCKETS",
    "COLUMNS",
    "KEY_TYPES",
    "SLOT_BYTES",
    "SPARK",
    "STATEMENTS",
    "WAYS",
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
    "can_join_columns",
    "choose_plan",
    "column_types",
    "draw_text",
    "expected_seconds",
    "kept_segments",
    "mask_of_input",
    "members_of",
    "output_columns",
    "q_error",
    "quoted",
    "read_view",
    "spark_seconds",
    "statement",
    "statistics_seconds",
    "steps",
    "stored_relations",
]
