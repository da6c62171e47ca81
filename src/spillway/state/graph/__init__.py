"""Operators that feed each other, level by level; a plain join is a graph of one.

Contract: all reports of an epoch rest on the same attempts of its tasks, or the epoch is run again. Start
with `graph` and `edge`, then `routing` and `step`; `parcel` is what travels between tasks, `kinds` is where
operators are looked up by kind.
"""

from spillway.state.graph.edge import OperatorEdge, Root, Selection
from spillway.state.graph.graph import Graph
from spillway.state.graph.inbox import Inbox, OverflowedEpochError
from spillway.state.graph.level_message import LevelMessage, TornEpochError, consistent_reports
from spillway.state.graph.outgoing import Outgoing, Quota
from spillway.state.graph.parcel import SCAN
from spillway.state.graph.routing import Routing, fused_stages
from spillway.state.graph.step import StageStep, placement_of, run_step
from spillway.state.graph.translation import merged_files

__all__ = [
    "SCAN",
    "Graph",
    "Inbox",
    "LevelMessage",
    "OperatorEdge",
    "Outgoing",
    "OverflowedEpochError",
    "Quota",
    "Root",
    "Routing",
    "Selection",
    "StageStep",
    "TornEpochError",
    "consistent_reports",
    "fused_stages",
    "merged_files",
    "placement_of",
    "run_step",
]
