"""The equality graph: inputs are nodes, equi-join conditions are edges, and the key connects all inputs.

Equality is transitive, so the terms of all edges fall into classes of equal value. A class with a term of
every input is one part of the key of an m-way join; every other equality becomes a residual predicate. A view
without a class over all inputs needs a tree of joins (`tree_planner`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spillway.errors import ViewError
from spillway.plan.sql import Equality, KeyTerm, Predicates, Scope, label


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of the key: an expression for each input, and the equalities that it covers."""

    terms: tuple[exp.Expr, ...]
    equalities: tuple[Equality, ...]


@dataclass(frozen=True, slots=True)
class SharedKey:
    """The key of one m-way join, and the conditions that it does not cover."""

    parts: tuple[KeyPart, ...]
    filters: tuple[KeyTerm, ...]
    residual: tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class EqualityClass:
    """Terms of equal value, at most one per input, and the equalities behind them."""

    terms: Mapping[int, exp.Expr]
    equalities: tuple[Equality, ...]


@dataclass(frozen=True, slots=True)
class EqualityGraph:
    """The classes of all equi-join conditions, and the filters that they imply for single inputs."""

    classes: tuple[EqualityClass, ...]
    filters: tuple[tuple[int, KeyTerm], ...]
    """Class and filter: two terms of one input in one class must equal each other."""


def equality_graph(predicates: Predicates) -> EqualityGraph:
    classes: list[EqualityClass] = []
    filters: list[tuple[int, KeyTerm]] = []
    for members in equality_classes(predicates.equalities):
        first: dict[int, exp.Expr] = {}
        for term in (side for equality in members for side in (equality.left, equality.right)):
            known = first.setdefault(term.input, term.node)
            if label(term.node) != label(known):
                equal = exp.EQ(this=known.copy(), expression=term.node.copy())
                filters.append((len(classes), KeyTerm(term.input, equal)))
        classes.append(EqualityClass(first, tuple(members)))
    return EqualityGraph(tuple(classes), tuple(filters))


def shared_key(graph: EqualityGraph, inputs: int) -> SharedKey | None:
    """The key over all inputs; None if there is none."""
    whole = [number for number, key_class in enumerate(graph.classes) if len(key_class.terms) == inputs]
    if not whole:
        return None
    parts = tuple(
        KeyPart(tuple(key_class.terms[index] for index in range(inputs)), key_class.equalities)
        for key_class in (graph.classes[number] for number in whole)
    )
    others = (key_class for number, key_class in enumerate(graph.classes) if number not in whole)
    return SharedKey(
        parts,
        tuple(term for number, term in graph.filters if number in whole),
        tuple(equality.node for key_class in others for equality in key_class.equalities),
    )


def equality_classes(equalities: tuple[Equality, ...]) -> list[list[Equality]]:
    """Equalities that share terms, directly or through others; in order of first appearance."""
    classes: list[tuple[set[tuple[int, str]], list[Equality]]] = []
    for equality in equalities:
        terms = {(side.input, label(side.node)) for side in (equality.left, equality.right)}
        touched = [known for known in classes if known[0] & terms]
        if not touched:
            classes.append((terms, [equality]))
            continue
        home = touched[0]
        home[0].update(terms, *(known[0] for known in touched[1:]))
        for other in touched[1:]:
            home[1].extend(other[1])
            classes.remove(other)
        home[1].append(equality)
    return [members for _, members in classes]


def is_connected(predicates: Predicates, scope: Scope) -> bool:
    """Whether every input has an equi-join with the others, directly or through them."""
    return len(_reachable(predicates.equalities)) == len(scope.inputs)


def check_connected(predicates: Predicates, scope: Scope) -> None:
    """Refuse a view in which some inputs have no equi-join with the others."""
    reached = _reachable(predicates.equalities)
    apart = [input_.alias for index, input_ in enumerate(scope.inputs) if index not in reached]
    if not apart:
        return
    near = [input_.alias for index, input_ in enumerate(scope.inputs) if index in reached]
    tried = [node for node in predicates.residual if any(c.table in apart for c in node.find_all(exp.Column))]
    found = f"; {label(tried[0])} is not one" if tried else ""
    raise ViewError(
        f"the view needs an equi-join between {', '.join(near)} and {', '.join(apart)}{found}: "
        f"add a condition such as {near[0]}.key = {apart[0]}.key"
    )


def _reachable(equalities: tuple[Equality, ...]) -> set[int]:
    reached = {0}
    while True:
        edges = [{equality.left.input, equality.right.input} for equality in equalities]
        more = reached.union(*(edge for edge in edges if edge & reached))
        if more == reached:
            return reached
        reached = more
