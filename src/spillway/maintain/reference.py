"""The slow, obvious executor of a plan: rows are tuples, deltas are counters, joins are nested loops.

Tests compare it with recomputation, and the Arrow executor with it. A wide row has one place per input: the
input's row (name to value), or None where the delta does not cover it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from spillway.maintain.graph import Edge, ViewGraph
from spillway.maintain.plan import MaintenancePlan, MaintenanceQuery, Part, Take

Row = tuple[tuple[str, object], ...]
Bag = Counter[Row]
Wide = tuple[Row | None, ...]
WideBag = Counter[Wide]
Answer = Callable[[int], tuple[Bag, Bag]]
"""Input to its rows now, and the signed changes among them that are not of the round or before it."""


def execute(plan: MaintenancePlan, deltas: Sequence[Bag], answer: Answer) -> WideBag:
    """The signed delta of the view."""
    graph = plan.graph
    slots: dict[int, WideBag] = {node: _wide(graph, node, deltas[node]) for node in graph.nodes}
    for step in plan.steps:
        if isinstance(step, MaintenanceQuery):
            now, later = answer(step.input)
            for part in step.parts:
                state = _minus(now, later)
                if part.before:
                    state = _minus(state, deltas[step.input])
                slots[part.write] = _join(graph, slots[part.read], step.input, state, part)
        elif isinstance(step, Take):
            row = list(slots[step.read].items())[step.row]
            slots[step.write] = Counter(dict([row]))
        else:
            slots[step.write] = _sum([slots[read] for read in step.reads])
    return _sum([slots[slot] for slot in plan.results])


def recompute(graph: ViewGraph, states: Sequence[Bag]) -> WideBag:
    """The view over these states of its inputs."""
    rows: WideBag = Counter({tuple(None for _ in graph.nodes): 1})
    for node in graph.nodes:
        edges = graph.edges_between(range(node), node)
        rows = _join(graph, rows, node, states[node], Part(0, 0, False, edges))
    return rows


def _join(graph: ViewGraph, rows: WideBag, node: int, state: Bag, part: Part) -> WideBag:
    edges = [graph.edges[number] for number in (*part.edges, *part.local)]
    joined: WideBag = Counter()
    for wide, weight in rows.items():
        for row, count in state.items():
            if all(_equal(edge, wide, node, row) for edge in edges):
                joined[(*wide[:node], row, *wide[node + 1 :])] += weight * count
    return Counter({wide: weight for wide, weight in joined.items() if weight})


def _equal(edge: Edge, wide: Wide, node: int, row: Row) -> bool:
    other = wide[edge.other(node)]
    assert other is not None
    left, right = dict(other), dict(row)
    pairs = zip(edge.columns(edge.other(node)), edge.columns(node), strict=True)
    return all(left[a] is not None and left[a] == right[b] for a, b in pairs)


def _wide(graph: ViewGraph, node: int, bag: Bag) -> WideBag:
    return Counter(
        {
            tuple(row if place == node else None for place in graph.nodes): weight
            for row, weight in bag.items()
        }
    )


def _minus(left: Bag, right: Bag) -> Bag:
    return Counter({row: left[row] - right[row] for row in {*left, *right} if left[row] != right[row]})


def _sum(bags: Sequence[WideBag]) -> WideBag:
    total: WideBag = Counter()
    for bag in bags:
        for row, weight in bag.items():
            total[row] += weight
    return Counter({row: weight for row, weight in total.items() if weight})
