"""The view graph: inputs are nodes, equi-join conditions are edges, and the key is what connects all of them.

Equality is transitive, so the terms of all edges fall into classes of equal value. A class with a term of
every input is one part of the key of an m-way join; every other equality becomes a residual predicate. Known
limit: a view without a class over all inputs needs a tree of joins, which is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from spillway.errors import ViewError
from spillway.plan.predicates import Equality, Predicates, Term
from spillway.plan.render import label
from spillway.plan.scope import Scope


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of the key: an expression for each input, and the equalities that it answers."""

    terms: tuple[exp.Expr, ...]
    equalities: tuple[Equality, ...]


@dataclass(frozen=True, slots=True)
class SharedKey:
    """The key of one m-way join, and what its equalities ask for besides."""

    parts: tuple[KeyPart, ...]
    filters: tuple[Term, ...]
    residual: tuple[exp.Expr, ...]


def shared_key(predicates: Predicates, scope: Scope) -> SharedKey:
    """The key over all inputs; a view that has none is refused with the conditions that stand in the way."""
    equalities = predicates.equalities
    parts: list[KeyPart] = []
    filters: list[Term] = []
    residual: list[exp.Expr] = []
    for members in equality_classes(equalities):
        first: dict[int, Term] = {}
        extra: list[Term] = []
        for term in (side for equality in members for side in (equality.left, equality.right)):
            if term.input not in first:
                first[term.input] = term
            elif label(term.node) != label(first[term.input].node):
                extra.append(term)
        if len(first) < len(scope.inputs):
            residual += [equality.node for equality in members]
            continue
        parts.append(KeyPart(tuple(first[index].node for index in range(len(scope.inputs))), tuple(members)))
        # Two terms of one input in one class must equal each other: a filter on that input alone.
        filters += [
            Term(t.input, exp.EQ(this=first[t.input].node.copy(), expression=t.node.copy())) for t in extra
        ]
    if not parts:
        raise _no_shared_key(predicates, scope)
    return SharedKey(tuple(parts), tuple(filters), tuple(residual))


def equality_classes(equalities: tuple[Equality, ...]) -> list[list[Equality]]:
    """Equalities that share terms, directly or through others; in order of first appearance."""
    classes: list[tuple[set[tuple[int, str]], list[Equality]]] = []
    for equality in equalities:
        terms = {(side.input, label(side.node)) for side in (equality.left, equality.right)}
        touched = [one for one in classes if one[0] & terms]
        if not touched:
            classes.append((terms, [equality]))
            continue
        home = touched[0]
        home[0].update(terms, *(one[0] for one in touched[1:]))
        for other in touched[1:]:
            home[1].extend(other[1])
            classes.remove(other)
        home[1].append(equality)
    return [members for _, members in classes]


def _no_shared_key(predicates: Predicates, scope: Scope) -> ViewError:
    equalities = predicates.equalities
    reached = _reachable(equalities)
    apart = [one.alias for index, one in enumerate(scope.inputs) if index not in reached]
    if apart:
        near = [one.alias for index, one in enumerate(scope.inputs) if index in reached]
        tried = [
            node for node in predicates.residual if any(c.table in apart for c in node.find_all(exp.Column))
        ]
        found = f"; {label(tried[0])} is not one" if tried else ""
        return ViewError(
            f"the view needs an equi-join between {', '.join(near)} and {', '.join(apart)}{found}: "
            f"add a condition such as {near[0]}.key = {apart[0]}.key"
        )
    first = equalities[0]
    kin = next(members for members in equality_classes(equalities) if first in members)
    tree = next(equality for equality in equalities if equality not in kin)
    return ViewError(
        f"join trees are not supported yet: {label(first.node)} and {label(tree.node)} join on different "
        "keys; all inputs must share one key"
    )


def _reachable(equalities: tuple[Equality, ...]) -> set[int]:
    reached = {0}
    while True:
        edges = [{one.left.input, one.right.input} for one in equalities]
        more = reached.union(*(edge for edge in edges if edge & reached))
        if more == reached:
            return reached
        reached = more
