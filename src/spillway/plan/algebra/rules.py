"""The rules that bring a query into the form that is planned, in their order.

Each takes a relation and gives one with the same rows; a test runs every rule alone. None is a rule of
sqlglot's optimizer, some of which change answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from spillway.plan.algebra.common_conjuncts import common_conjuncts
from spillway.plan.algebra.flatten_joins import flatten_joins
from spillway.plan.algebra.prune_columns import prune_columns
from spillway.plan.algebra.push_predicates import push_predicates
from spillway.plan.algebra.relation import Relation

Rule = Callable[[Relation], Relation]

RULES: tuple[Rule, ...] = (
    common_conjuncts,
    flatten_joins,
    push_predicates,
    prune_columns,
)


def simplified(relation: Relation) -> Relation:
    """`relation` after all rules."""
    return reduce(lambda current, rule: rule(current), RULES, relation)
