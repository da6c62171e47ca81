"""Plans as values: an m-way join, a tree of joins, a frame of statistics (`OVER`); keys and partitionings.

Contract: frozen; a fingerprint identifies a plan in checkpoints, so class names of leaves are on disk. Start
with `join`; `tree_layout` says which columns flow between the joins of a tree.
"""

from spillway.plan.operators.frame import AggregatePlan, aggregate_fingerprint
from spillway.plan.operators.join import InputPlan, JoinPlan, OutputColumn, StateColumn, fingerprint
from spillway.plan.operators.keys import common_key_type, hash_is_exact
from spillway.plan.operators.partitioning import JOIN_KINDS, Grid, check_join_kind, partition_classes
from spillway.plan.operators.tree import (
    Below,
    Child,
    JoinNode,
    Leaf,
    TreePlan,
    shape_text,
    tree_fingerprint,
)
from spillway.plan.operators.tree_choice import JoinSize, Shape, SizedTree, TreeChoice
from spillway.plan.operators.tree_layout import (
    GroupNumber,
    InputLayout,
    KeyHash,
    KeyValue,
    LeafColumn,
    OperatorLayout,
    Symbol,
    layout,
    leaf_symbols,
)

__all__ = [
    "JOIN_KINDS",
    "AggregatePlan",
    "Below",
    "Child",
    "Grid",
    "GroupNumber",
    "InputLayout",
    "InputPlan",
    "JoinNode",
    "JoinPlan",
    "JoinSize",
    "KeyHash",
    "KeyValue",
    "Leaf",
    "LeafColumn",
    "OperatorLayout",
    "OutputColumn",
    "Shape",
    "SizedTree",
    "StateColumn",
    "Symbol",
    "TreeChoice",
    "TreePlan",
    "aggregate_fingerprint",
    "check_join_kind",
    "common_key_type",
    "fingerprint",
    "hash_is_exact",
    "layout",
    "leaf_symbols",
    "partition_classes",
    "shape_text",
    "tree_fingerprint",
]
