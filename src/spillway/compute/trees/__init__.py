"""Tree shapes, one algorithm per file.

Contract: a shape is a pure function from a cost model to a tree of segments. Start with `choice`, which
compares them by cost.
"""

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
