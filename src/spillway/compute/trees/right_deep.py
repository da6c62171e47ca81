"""The right-deep tree: one segment over all relations, fully pipelined (dissertation, 2.2.1).

The largest relation probes; all others are hash tables at the same time.
"""

from __future__ import annotations

from spillway.compute.cost import CostModel
from spillway.compute.tree import Segment
from spillway.compute.trees.chain import chain_of


def right_deep(model: CostModel) -> Segment:
    return chain_of(model, model.graph.everything)
