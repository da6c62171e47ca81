"""Operators that feed each other, level by level; a plain join is a graph of one.

Contract: a level's reports are consistent with each other, or the epoch is run again. Start with `graph`,
then `step`; `kinds` is where operators are looked up by kind.
"""

from spillway.state.graph.file_barrier import FileBarrier
from spillway.state.graph.graph import Graph
from spillway.state.graph.level_message import (
    LevelMessage,
    TornEpochError,
    consistent_reports,
    remove_exchange,
    together,
)
from spillway.state.graph.step import TreeStep, fused_levels, placement_of, run_step

__all__ = [
    "FileBarrier",
    "Graph",
    "LevelMessage",
    "TornEpochError",
    "TreeStep",
    "consistent_reports",
    "fused_levels",
    "placement_of",
    "remove_exchange",
    "run_step",
    "together",
]
