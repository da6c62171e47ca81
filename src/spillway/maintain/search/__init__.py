"""Search for cheap maintenance plans: orders of the steps of batching, paths of grouping (11.3.2).

Contract: pure; a search returns a plan and its estimate. Start with `controlled` (algorithm 9).
"""

from spillway.maintain.search.controlled import controlled_instance
from spillway.maintain.search.enumerate_steps import best_instance, instances
from spillway.maintain.search.grouping import best_grouping, grouping_paths
from spillway.maintain.search.step import PartialStep

__all__ = [
    "PartialStep",
    "best_grouping",
    "best_instance",
    "controlled_instance",
    "grouping_paths",
    "instances",
]
