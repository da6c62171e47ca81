"""Which tree of joins a view gets: the given one, or by statistics, or without them as keys are shared.

Statistics decide only if all inputs have them: a tree by guesses would change with whatever is known. Where
one key joins all inputs and no two of them share another, there is nothing to choose.
"""

from __future__ import annotations

from spillway.plan.operators import Shape, TreeChoice
from spillway.plan.rules.equality_graph import EqualityGraph
from spillway.plan.rules.input_statistics import AskedInput, NoStatistics, Statistics
from spillway.plan.rules.join_sizes import JoinSizes
from spillway.plan.rules.key_terms import input_filter
from spillway.plan.rules.tree_search import TreeSearch
from spillway.plan.sql import Predicates, Scope, dependencies, source_sql

GIVEN, KEPT = "as given", "as the checkpoint has it"
BY_SIZES = "least expected work"
BY_KEYS = "as many inputs at once as share a key"


def is_one_join(shape: Shape) -> bool:
    return all(isinstance(part, str) for part in shape)


def choose_tree(
    scope: Scope, predicates: Predicates, graph: EqualityGraph, statistics: Statistics | None
) -> TreeChoice | None:
    """The tree by statistics; without them it has no sizes. None if there is only one tree."""
    if all(len(key_class.terms) == len(scope.inputs) for key_class in graph.classes):
        return None
    if statistics is None:
        return TreeChoice(f"{BY_KEYS}; no statistics")
    names = [input_.alias for input_ in scope.inputs]
    asked = [_asked(scope, predicates, graph, index) for index in range(len(names))]
    known = statistics(asked)
    if isinstance(known, NoStatistics):
        return TreeChoice(f"{BY_KEYS}; no statistics: {known.why}")
    residuals = [sum(1 << index for index in dependencies(node, scope)) for node in predicates.residual]
    sizes = JoinSizes(known, [frozenset(input_.keys) for input_ in asked], residuals)
    best = TreeSearch(names, [input_.filter is not None for input_ in asked], sizes).best()
    rows = tuple(of_input.rows for of_input in known)
    return TreeChoice(BY_SIZES, best[0], best[1] if len(best) > 1 else None, rows)


def _asked(scope: Scope, predicates: Predicates, graph: EqualityGraph, index: int) -> AskedInput:
    filters = (*predicates.filters, *(term for _, term in graph.filters))
    keys = {
        number: source_sql(key_class.terms[index])
        for number, key_class in enumerate(graph.classes)
        if index in key_class.terms
    }
    input_ = scope.inputs[index]
    return AskedInput(input_.alias, input_.source, input_filter(index, filters), keys)
