"""The shape of a graph and its numbers: operators with different groups, edges that skip levels."""

import numpy as np
import pyarrow as pa
import pytest

from spillway.errors import StateError
from spillway.model.window import Window
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.frame.operator import FrameOperator
from spillway.state.graph.edge import OperatorEdge, Root, Selection
from spillway.state.graph.graph import NO_WINDOW, Graph
from spillway.state.graph.routing import Routing, fused_stages
from spillway.state.join.operator import JoinOperator
from spillway.state.rows.group import group_starts
from spillway.state.step.operator import WireInput

SCHEMA = pa.schema([("x", pa.int64())])
X = ColumnRef(0, 0)
GROUPS = (2, 1, 3, 2)


def join(groups: int, windows: tuple[Window, ...] = ()) -> JoinOperator:
    inputs = tuple(WireInput(name, ("x",), ("s0",)) for name in "ab")
    return JoinOperator(inputs, (X,), None, ((), ()), groups, SCHEMA, windows)


DIAMOND = Graph(
    tuple(join(groups) for groups in GROUPS),
    ((0, 0), (0, 1), (1, 1), (2, 1), (0, 0)),
    edges=(
        OperatorEdge(0, 1, 0),
        OperatorEdge(0, 2, 0),
        OperatorEdge(1, 3, 0),
        OperatorEdge(2, 3, 1),
        OperatorEdge(0, 3, 1),
    ),
    roots=(Root(3, "top"), Root(1, "side")),
)


def test_operators_are_one_level_above_the_highest_that_feeds_them() -> None:
    assert DIAMOND.levels == (0, 1, 1, 2)
    chain = Graph(
        tuple(join(1) for _ in range(3)),
        (),
        edges=(OperatorEdge(0, 2, 0), OperatorEdge(1, 2, 1), OperatorEdge(0, 1, 0)),
    )
    assert chain.levels == (0, 1, 2)


def test_the_height_of_an_operator_is_its_way_to_the_next_result() -> None:
    assert DIAMOND.heights == (1, 0, 1, 0)
    assert DIAMOND.group_heights == (1, 1, 0, 1, 1, 1, 0, 0)


def test_groups_and_inputs_are_numbered_consecutively() -> None:
    assert DIAMOND.first_groups == (0, 2, 3, 6) and DIAMOND.groups == 8
    assert DIAMOND.group_sets == (0b11, 0b100, 0b111000, 0b11000000)
    assert DIAMOND.first_inputs == (0, 2, 4, 6)


def test_what_misses_results_may_feed_all_above_it_over_every_path() -> None:
    assert DIAMOND.downstream(0b1) == 0b11111100
    assert DIAMOND.downstream(0b100) == DIAMOND.downstream(0b110000) == 0b11000000
    assert DIAMOND.downstream(0b1000000) == 0


def test_rows_on_the_wire_go_to_the_groups_of_their_operator() -> None:
    tags = np.array([0, 1, 2, 3, 3, 4], dtype=np.int8)
    hashes = np.concatenate([group_starts(2), group_starts(2)[:1], group_starts(3)[1:], group_starts(2)[1:]])
    assert DIAMOND.group_numbers(tags, hashes).tolist() == [0, 1, 2, 4, 5, 1]


def test_a_processor_may_have_no_group_of_an_operator() -> None:
    placement = (0, 1, 2, 0, 0, 1, 1, 0)
    routing = Routing(DIAMOND, placement, 4, fused_stages(DIAMOND, placement))
    assert [routing.placement_of(number) for number in range(4)] == [(0, 1), (2,), (0, 0, 1), (1, 0)]
    tags, hashes = np.array([2, 2, 3], dtype=np.int8), np.array([-1, 1, 1])
    batch = pa.RecordBatch.from_arrays(
        [pa.array(tags), pa.array(hashes), pa.array([7, 8, 9])], names=["t", "h", "s0"]
    )
    found = [
        (target, operator, rows.column("t").to_pylist(), rows.column("s0").to_pylist())
        for target, operator, rows, _ in routing.split(batch)
    ]
    assert sorted(found) == [(4, 2, [1], [9]), (6, 1, [1, 1], [7, 8])]


def test_rows_stay_in_one_stage_as_long_as_all_groups_are_on_one_processor() -> None:
    assert fused_stages(DIAMOND, (1,) * 8) == ((0, 1, 2),)
    assert fused_stages(DIAMOND, (1,) * 7 + (0,)) == ((0, 1), (2,))
    assert fused_stages(DIAMOND, (1, 1, 0, 1, 1, 1, 1, 1)) == ((0,), (1,), (2,))


def test_a_stage_feeds_all_later_stages_to_which_it_has_an_edge() -> None:
    placement = (0, 1, 2, 0, 0, 1, 1, 0)
    routing = Routing(DIAMOND, placement, 4, fused_stages(DIAMOND, placement))
    assert routing.feeds(0) == {1: [1, 2], 2: [3]}
    assert routing.feeds(1) == {2: [3]}


def test_inputs_without_a_window_never_expire_beside_those_that_have_one() -> None:
    window = Window(0, 5, 1)
    graph = Graph((join(1), join(1, (window, window))), (), edges=(OperatorEdge(0, 1, 0),))
    assert graph.windows == (NO_WINDOW, NO_WINDOW, window, window)
    assert DIAMOND.windows == ()


def test_a_new_schema_of_a_result_leaves_all_else_as_it_is() -> None:
    small = pa.schema([("y", pa.int32())])
    found = DIAMOND.with_result_schema(small, "side")
    assert (found.result_schema("side"), found.result_schema("top")) == (small, SCHEMA)
    assert found.operators == DIAMOND.operators  # its rows also go to another operator
    assert found.roots[1].selection == Selection((X,), small)
    assert found.with_result_schema(SCHEMA, "side").roots[1].selection == Selection((X,), SCHEMA)
    top = DIAMOND.with_result_schema(small, "top")
    assert top.operators[3].result_schema == small and top.roots == DIAMOND.roots


def test_a_plain_view_is_one_and_nothing_else_is() -> None:
    plain = Graph.of_one(join(2))
    assert plain.is_one and plain.result_schema() == SCHEMA
    for other in (
        Graph(plain.operators, plain.tags, roots=(Root(0, "named"),)),
        Graph(plain.operators, plain.tags, roots=(Root(0), Root(0))),
        Graph(plain.operators, plain.tags, roots=(Root(0, selection=Selection((X,), SCHEMA)),)),
        Graph(plain.operators, (*plain.tags, (0, 1)), roots=plain.roots),
        DIAMOND,
    ):
        assert not other.is_one


def test_results_go_straight_to_the_sink_if_they_go_nowhere_else() -> None:
    edges, operators = (OperatorEdge(0, 1, 0),), (join(1), join(1))
    assert [Graph(operators, (), edges, (Root(1),)).is_final(number) for number in (0, 1)] == [False, True]
    assert not Graph(operators, (), edges, (Root(1), Root(1))).is_final(1)
    assert not Graph(operators, (), edges, (Root(0), Root(1))).is_final(0)
    assert not Graph(operators, (), edges, (Root(1, "named"),)).is_final(1)
    assert not Graph(operators, (), edges, (Root(1, selection=Selection((X,), SCHEMA)),)).is_final(1)


def test_graphs_that_nobody_can_run_are_bugs() -> None:
    with pytest.raises(StateError, match="operator 1 feeds operator 1 before it"):
        Graph((join(1), join(1)), (), edges=(OperatorEdge(1, 1, 0),))
    frame = FrameOperator(join(1).inputs[:1], (X,), (), (0,), 0, (), 1, 0, 1, SCHEMA)
    with pytest.raises(StateError, match="rows wait is not alone"):
        Graph((frame, join(1)), (), edges=(OperatorEdge(0, 1, 0),))
    other = Selection((X,), pa.schema([("y", pa.int64())]))
    with pytest.raises(StateError, match="result 'a' has rows with different columns"):
        Graph((join(1),), (), roots=(Root(0, "a"), Root(0, "a", other)))
