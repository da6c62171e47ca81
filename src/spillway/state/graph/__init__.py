"""Operators that feed each other, level by level; a plain join is a graph of one.

Contract: a level's reports are consistent with each other, or the epoch is run again. Start with `graph`,
then `step`; `kinds` is where operators are looked up by kind.
"""

from spillway.state.graph.binding import bind_tree, symbol_name
from spillway.state.graph.delivery import Delivery, TornEpochError, agreed, remove_parcels, together
from spillway.state.graph.graph import Graph
from spillway.state.graph.kinds import run_step
from spillway.state.graph.meeting import Meeting
from spillway.state.graph.step import TreeStep, fused_levels, placement_of

__all__ = [
    "Delivery",
    "Graph",
    "Meeting",
    "TornEpochError",
    "TreeStep",
    "agreed",
    "bind_tree",
    "fused_levels",
    "placement_of",
    "remove_parcels",
    "run_step",
    "symbol_name",
    "together",
]
