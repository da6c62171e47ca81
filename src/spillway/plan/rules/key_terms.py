"""What join keys require of the inputs' terms: a common type, exact equalities, filters."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from spillway.plan.operators import common_key_type
from spillway.plan.sql import Equality, KeyTerm, Scope, conjunction, label, source_sql


def input_filter(index: int, terms: Sequence[KeyTerm]) -> str | None:
    """The conjunction of what must hold on one input alone, in the order in which it was written."""
    own = [term.node for term in terms if term.input == index]
    return source_sql(conjunction(own)) if own else None


def blurred_equalities(equalities: Sequence[Equality], common: str | None, scope: Scope) -> list[exp.Expr]:
    """Equalities that the key alone does not decide.

    A key that mixes integers and floats is compared as double, where two different integers may look equal.
    So an equality that Spark would test in a narrower type stays as a residual predicate.
    """
    if common != "double":
        return []
    blurred: list[exp.Expr] = []
    for equality in equalities:
        pair = [_typed(side.node, scope) for side in (equality.left, equality.right)]
        known = [kind for kind in pair if kind is not None]
        if len(known) == 2 and common_key_type(known) != common:
            blurred.append(equality.node)
    return blurred


def common_type(nodes: Sequence[exp.Expr], scope: Scope) -> str | None:
    """The type of a key part; types that do not fit are refused if the catalog knows them."""
    terms = [_typed(node, scope) for node in nodes]
    known = [term for term in terms if term is not None]
    common = common_key_type(known) if known else None
    return common if len(known) == len(terms) else None


def _typed(node: exp.Expr, scope: Scope) -> tuple[str, str] | None:
    """Label and type of a bare column; only Spark's analysis knows the type of anything else."""
    if not isinstance(node, exp.Column):
        return None
    index = scope.position(node.table)
    column = scope.inputs[index].find(node.name) if index is not None else None
    return None if column is None else (label(node), column.type)
