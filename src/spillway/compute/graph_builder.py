"""The join graph of a view: numbers that the user gave, and statistics for the rest.

Estimates below one row count as one row: with an empty relation all trees would cost the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from spillway.compute.compute_view import ComputeView, ViewKey
from spillway.compute.join_graph import JoinGraph, JoinKey, Relation
from spillway.compute.sketch import RelationStatistics, selectivity
from spillway.errors import JobError

LEAST_SHARE = 1e-12


def build_graph(
    view: ComputeView,
    statistics: Sequence[RelationStatistics],
    *,
    rows: Mapping[str, float] | None = None,
    selectivities: Mapping[str, float] | None = None,
) -> JoinGraph:
    """`rows` (by alias) and `selectivities` (by "a b" or "a.k = b.k") come from the user and take
    precedence."""
    given_rows, given_shares = dict(rows or {}), dict(selectivities or {})
    aliases = [relation.alias for relation in view.relations]
    for name in given_rows:
        if name not in aliases:
            raise JobError(
                f"[compute.rows] {name} is not a relation of the view; it has {', '.join(aliases)}"
            )
    relations = tuple(
        Relation(
            relation.alias,
            max(given_rows.get(relation.alias, float(known.rows)), 1.0),
            max(known.row_bytes, 1.0),
            known.tasks,
        )
        for relation, known in zip(view.relations, statistics, strict=True)
    )
    classes = tuple(_key_class(key, aliases, statistics, given_shares) for key in view.keys)
    if given_shares:
        known_pairs = ", ".join(key.label for key in view.keys)
        raise JobError(
            f'[compute.selectivity] "{next(iter(given_shares))}" is not an equality of the view; '
            f'it has {known_pairs}; write for example "{aliases[0]} {aliases[1]}" = 0.001'
        )
    return JoinGraph(relations, classes, tuple(predicate.mask for predicate in view.residual))


def _key_class(
    key: ViewKey,
    aliases: list[str],
    statistics: Sequence[RelationStatistics],
    given: dict[str, float],
) -> JoinKey:
    shares: dict[tuple[int, int], float] = {}
    for (left, left_column), (right, right_column) in combinations(key.members, 2):
        share = selectivity(
            statistics[left].keys[left_column],
            statistics[right].keys[right_column],
            statistics[left].rows,
            statistics[right].rows,
        )
        for name in (f"{aliases[left]} {aliases[right]}", f"{aliases[right]} {aliases[left]}", key.label):
            share = given.pop(name, share)
        shares[left, right] = max(share, LEAST_SHARE)
    return JoinKey(tuple(member for member, _ in key.members), shares, key.label)
