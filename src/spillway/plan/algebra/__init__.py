"""Views as relational algebra: what a statement with WITH, derived tables and UNION ALL means, simplified.

Contract: `build` makes a relation of a statement, or refuses a clause by name; `simplified` gives the same
rows by as few joins as possible. Pure: no types are asked of Spark, nothing is read. Start with `relation`,
then `builder`, then `rules`.
"""

from spillway.plan.algebra.builder import TypeOf, build
from spillway.plan.algebra.columns import rewritten
from spillway.plan.algebra.relation import (
    Computed,
    Field,
    Filter,
    InnerJoin,
    Project,
    Relation,
    SourceRows,
    UnionAll,
)
from spillway.plan.algebra.rules import RULES, simplified

__all__ = [
    "RULES",
    "Computed",
    "Field",
    "Filter",
    "InnerJoin",
    "Project",
    "Relation",
    "SourceRows",
    "TypeOf",
    "UnionAll",
    "build",
    "rewritten",
    "simplified",
]
