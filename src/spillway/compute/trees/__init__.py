"""Tree shapes, one algorithm per file; `choice` compares them by the cost model."""

from spillway.compute.trees.choice import ALGORITHMS, CHOSEN, Proposal, choose, proposal_of
from spillway.compute.trees.incremental import incremental_tree
from spillway.compute.trees.right_deep import right_deep_tree
from spillway.compute.trees.segmented_bushy import compose
from spillway.compute.trees.segmented_right_deep import minimized_work

__all__ = [
    "ALGORITHMS",
    "CHOSEN",
    "Proposal",
    "choose",
    "compose",
    "incremental_tree",
    "minimized_work",
    "proposal_of",
    "right_deep_tree",
]
