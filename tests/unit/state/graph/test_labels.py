"""Errors of expressions at run time name the user's columns, in trees too."""

import pickle
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.operators.tree import TreePlan
from spillway.plan.operators.tree_layout import LeafColumn, leaf_symbols
from spillway.plan.rules.planner import plan_view
from spillway.state.binding.tree import bind_tree
from spillway.state.graph.graph import Graph
from spillway.state.step.operator import WireInput, column_labels
from spillway.state.step.results import output_arrays

SQL = (
    "SELECT p.price / v.shares AS ratio, CAST(p.id + r.id AS tinyint) AS small, p.id * r.id AS product "
    "FROM p JOIN v ON p.k = v.k JOIN r ON v.j = r.j WHERE p.price % v.shares < 3"
)
TYPES = {"k": pa.int64(), "j": pa.int64(), "id": pa.int64(), "price": pa.int64(), "shares": pa.int64()}


def bound(sql: str = SQL) -> Graph:
    plan = plan_view(View.sql(sql), dict.fromkeys("pvr", tuple(Column(name, "bigint") for name in TYPES)))
    assert isinstance(plan, TreePlan)
    exact = [True] * len(plan.joins)
    symbols = [leaf_symbols(plan, exact, leaf) for leaf in range(len(plan.inputs))]
    slots = [tuple(f"s{leaf}_{n}" for n in range(len(of))) for leaf, of in enumerate(symbols)]

    def leaf_type(symbol: Any) -> pa.DataType:
        assert isinstance(symbol, LeafColumn)
        return TYPES[plan.inputs[symbol.leaf].columns[symbol.column].label]

    return bind_tree(plan, exact, leaf_type, slots, 4)


def values(found: dict[str, int], graph: Graph, ref: Any) -> pa.Array:
    label = graph.operators[-1].inputs[ref.input].label(ref.column)
    return pa.array([found[label]], pa.int64())


@pytest.mark.parametrize(
    ("shares", "left", "told"),
    [
        (0, 1, r"division by zero; test the divisor in CASE WHEN \(in p\.price / v\.shares\)"),
        (1, 100, r"cast overflow: .* \(in CAST\(p\.id \+ r\.id AS tinyint\)\)"),
        (1, 2**62, r"arithmetic overflow in bigint; .* \(in CAST\(p\.id \+ r\.id AS tinyint\)\)"),
    ],
)
def test_a_tree_names_the_columns_of_the_view(shares: int, left: int, told: str) -> None:
    graph = pickle.loads(pickle.dumps(bound()))
    root = graph.operators[-1]
    row = {"p.price": 6, "v.shares": shares, "p.id": left, "r.id": left}
    with pytest.raises(ViewError, match=told):
        output_arrays(root, 1, root.outputs, partial(values, row, graph))


def test_a_column_without_a_label_has_its_own_name() -> None:
    assert WireInput("a", ("id", "p"), ("s0", "s1")).label(1) == "a.p"


def test_the_condition_of_a_join_is_named() -> None:
    labels = column_labels(bound().operators[0])
    shown = {labels(ref) for ref in _references(bound().operators[0])}
    assert shown == {"p.price", "v.shares"}


def _references(operator: Any) -> Any:
    from spillway.plan.expression.nodes import references

    return references(operator.residual)


def test_a_condition_that_is_no_condition_is_shown() -> None:
    wrong = SQL.replace("p.price % v.shares < 3", "p.price % v.shares")
    with pytest.raises(ViewError, match=r"p\.price % v\.shares.* bigint.*write a comparison"):
        bound(wrong)
