"""Cost-based choice: every algorithm proposes a tree, and the one with the least estimated time wins.

An estimate cannot distinguish trees with nearly the same time; of those the one with the fewest segments
wins. With a memory limit only trees whose segments each fit are eligible. There is always one, unless a
single relation is larger than the memory. The exact search comes last. It may take only a small part of the
best time so far, because it must not take longer than it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spillway.compute.cost import TreeCost
from spillway.compute.tree import Segment
from spillway.compute.trees.exhaustive import MOST_PAIRS, exhaustive
from spillway.compute.trees.greedy import greedy
from spillway.compute.trees.incremental import incremental_tree
from spillway.compute.trees.left_deep import left_deep
from spillway.compute.trees.right_deep import right_deep_by_cost, right_deep_tree
from spillway.compute.trees.segmented_bushy import segmented_bushy, segmented_bushy_by_cost
from spillway.compute.trees.segmented_right_deep import balanced_consideration, minimized_work
from spillway.compute.trees.zigzag import cut, zigzag
from spillway.errors import JobError

CHOSEN, EXACT = "chosen", "exhaustive"
PLANNING_SHARE = 0.05
"""How much of the estimated time the exact search may take."""
PAIR_SECONDS, LEAST_PAIRS = 5e-5, 1_000
"""The time that one pair of connected sets takes, and how many pairs are always allowed (8 relations)."""
NEAR = 0.03
"""Estimated times that differ by a smaller share count as equal."""
Algorithm = Callable[[TreeCost], Segment | None]

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "left-deep": left_deep,
        "right-deep": right_deep_tree,
        "right-deep-by-cost": right_deep_by_cost,
        "zigzag": zigzag,
        "segmented-right-deep": minimized_work,
        "segmented-right-deep-balanced": balanced_consideration,
        "segmented-bushy": segmented_bushy,
        "segmented-bushy-by-cost": segmented_bushy_by_cost,
        "incremental": incremental_tree,
        "greedy": greedy,
        "exhaustive": exhaustive,
    }
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A tree, the algorithm that made it, and its estimates."""

    algorithm: str
    tree: Segment
    seconds: float
    work: float
    fits: bool


def propose(model: TreeCost, algorithm: str) -> Proposal | None:
    """The tree of one algorithm; None if the exact search gives up."""
    if algorithm not in ALGORITHMS:
        known = ", ".join((CHOSEN, *ALGORITHMS))
        raise JobError(f'tree = "{algorithm}": must be one of {known}')
    tree = ALGORITHMS[algorithm](model)
    if tree is None:
        return None
    return proposal_of(model, algorithm, tree)


def proposal_of(model: TreeCost, algorithm: str, tree: Segment) -> Proposal:
    """A tree with its costs."""
    return Proposal(algorithm, tree, model.seconds(tree), model.work(tree), model.fits(tree))


def proposals(model: TreeCost) -> list[Proposal]:
    """The trees of all algorithms, the best first: those that fit into memory, then by time (of the nearly
    equal ones the simplest)."""
    made = [found for name in ALGORITHMS if name != EXACT and (found := propose(model, name)) is not None]
    pairs = min(proposal.seconds for proposal in made) * PLANNING_SHARE / PAIR_SECONDS
    exact = exhaustive(model, round(min(max(pairs, LEAST_PAIRS), MOST_PAIRS)))
    if exact is not None:
        made.append(proposal_of(model, EXACT, exact))
    near = min((proposal.seconds for proposal in made if proposal.fits), default=0.0) * (1 + NEAR)

    def rank(proposal: Proposal) -> tuple[bool, bool, int, float]:
        is_near = proposal.seconds <= near
        segments = len(list(proposal.tree.segments())) if is_near else 0
        return not proposal.fits, not is_near, segments, proposal.seconds

    return sorted(made, key=rank)


def choose(model: TreeCost, algorithm: str = CHOSEN) -> Proposal:
    """The tree to run: the best of all, or that of one algorithm, cut into pieces that fit into memory."""
    if algorithm == CHOSEN:
        return _within_memory(model, proposals(model)[0])
    made = propose(model, algorithm)
    if made is None:
        raise JobError(
            f'tree = "{algorithm}": the graph has too many connected sets for the exact search; '
            f'use tree = "{CHOSEN}" or "greedy"'
        )
    return _within_memory(model, made)


def _within_memory(model: TreeCost, proposal: Proposal) -> Proposal:
    """The tree, with segments cut into pieces that fit."""
    if proposal.fits:
        return proposal
    tree = _cut_all(model, proposal.tree)
    return proposal_of(model, proposal.algorithm, tree)


def _cut_all(model: TreeCost, tree: Segment) -> Segment:
    probe = tree.probe if isinstance(tree.probe, int) else _cut_all(model, tree.probe)
    builds = tuple(build if isinstance(build, int) else _cut_all(model, build) for build in tree.builds)
    return cut(model, Segment(probe, builds))
