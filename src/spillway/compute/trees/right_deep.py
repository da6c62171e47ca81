"""The right-deep tree: one segment over all relations, fully pipelined (dissertation, 2.2.1).

The largest relation probes; all others are hash tables at the same time. By cost, every relation is tried as
the one that probes: with a small one in front, and only a few rows that match at each step, a pipeline can
cost less than the large one saves in building.
"""

from __future__ import annotations

from spillway.compute.cost import TreeCost
from spillway.compute.join_graph import members_of
from spillway.compute.tree import Segment
from spillway.compute.trees.chain import chain, chain_of


def right_deep_tree(model: TreeCost) -> Segment:
    return chain_of(model, model.graph.everything)


def right_deep_by_cost(model: TreeCost) -> Segment:
    relations = list(members_of(model.graph.everything))
    trees = (chain(model, probe, [build for build in relations if build != probe]) for probe in relations)
    return min(trees, key=model.seconds)
