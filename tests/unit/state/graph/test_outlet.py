"""What goes over edges and roots: which rows, with which columns and hash, to which processor and file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.errors import ViewError
from spillway.plan.expression.nodes import Call, ColumnRef, Expression, Literal
from spillway.state.graph.edge import OperatorEdge, Root, Selection
from spillway.state.graph.outlet import GraphOutlet, GraphWriter, PlacedEdge
from spillway.state.join.operator import JoinOperator
from spillway.state.orders.orders import Limits, Orders
from spillway.state.rows.group import folded, group_of, group_starts, hash_in_group
from spillway.state.rows.xxhash import xxhash64
from spillway.state.step.operator import WireInput
from spillway.state.step.task import Task, TaskAttempt

A, B = ColumnRef(0, 0), ColumnRef(0, 1)
TYPES = {"a": pa.int64(), "b": pa.int64()}
SCHEMA = pa.schema(list(TYPES.items()))
VALUES = {0: pa.array([1, None, 3, 4]), 1: pa.array([10, 20, None, 40])}
HASHES = group_starts(4)
Sent = list[tuple[int, int, dict[str, list[object]]]]


def join(groups: int, slots: tuple[str, ...]) -> JoinOperator:
    inputs = tuple(WireInput(name, slots, slots) for name in "xy")
    return JoinOperator(inputs, (A, B), None, ((), ()), groups, SCHEMA)


def written(
    edge: OperatorEdge | None = None,
    roots: tuple[Root, ...] = (),
    *,
    slots: tuple[str, ...] = ("s0", "s1"),
    placement: tuple[int, ...] = (0,),
    staging: dict[str, str | None] | None = None,
) -> tuple[GraphWriter, Sent]:
    """A writer that has taken the rows, and what it sent."""
    sent: Sent = []
    limits, state = Limits(), "/nowhere"
    orders = Orders(7, 3, 0b1111, (), (), (), limits, state, state, staging or {}, None, "snappy")
    edges = () if edge is None else (PlacedEdge(edge, join(len(placement), slots), placement),)
    outlet = GraphOutlet(edges, roots, lambda *row: sent.append((row[0], row[1], row[2].to_pydict())))
    writer = outlet.writer(Task(orders, join(4, slots), TaskAttempt("h", "e", "x")), lambda: None)
    writer.write_rows(HASHES, (A, B), lambda ref: VALUES[ref.column])
    return writer, sent


def selection(*outputs: Expression, predicate: Expression | None = None) -> Selection:
    schema = pa.schema([(f"o{number}", pa.int64()) for number in range(len(outputs))])
    return Selection(outputs, schema, predicate)


def test_rows_go_on_as_they_are_and_keep_their_hash() -> None:
    writer, sent = written(OperatorEdge(0, 2, 1))
    ((target, operator, rows),) = sent
    assert (target, operator) == (0, 2)
    assert rows == {
        "t": [1] * 4,
        "h": HASHES.tolist(),
        "s0": VALUES[0].to_pylist(),
        "s1": VALUES[1].to_pylist(),
    }
    assert writer.rows == 4 and writer.group_results.tolist() == [1, 1, 1, 1]
    assert writer.close() == {}


def test_rows_are_left_out_where_the_predicate_is_not_true_and_columns_are_computed() -> None:
    more = Call("<", (A, Literal(4, "bigint")))
    _, sent = written(OperatorEdge(0, 1, 0, selection=selection(B, Call("+", (A, B)), predicate=more)))
    ((_, _, rows),) = sent
    assert (rows["s0"], rows["s1"]) == ([10, None], [11, None])
    assert rows["h"] == HASHES[[0, 2]].tolist()
    _, sent = written(OperatorEdge(0, 1, 0, selection=selection(A, B, predicate=Call("<", (B, A)))))
    assert not sent


def test_values_of_a_key_are_hashed_as_spark_does_and_a_row_without_one_does_not_go_on() -> None:
    _, sent = written(OperatorEdge(0, 1, 0, keys=1, hashed=False, selection=selection(A, A, B)))
    ((_, _, rows),) = sent
    assert rows["s0"] == [1, 3, 4] and rows["s1"] == [10, None, 40]
    assert rows["h"] == xxhash64([pa.array([1, 3, 4])]).tolist()
    _, sent = written(OperatorEdge(0, 1, 0, keys=2, hashed=False, selection=selection(A, B, A, B)))
    ((_, _, rows),) = sent
    assert rows["s0"] == [1, 4]
    assert rows["h"] == xxhash64([pa.array([1, 4]), pa.array([10, 40])]).tolist()


def test_hashes_that_a_row_carries_are_folded_and_its_group_goes_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = {0: pa.array([5, 6, 7, 8]), 1: pa.array([50, 60, 70, 80])}
    monkeypatch.setattr(f"{__name__}.VALUES", whole)
    hashes = folded([whole[0].to_numpy(), whole[1].to_numpy()])
    for keeps_group in (False, True):
        edge = OperatorEdge(0, 1, 0, keys=2, keeps_group=keeps_group, traced=True)
        _, sent = written(edge, slots=("g",))
        ((_, _, rows),) = sent
        assert rows["g"] == [0, 1, 2, 3]
        assert rows["h"] == (hash_in_group(HASHES, hashes) if keeps_group else hashes).tolist()


def test_each_row_goes_to_the_processor_of_its_group_there() -> None:
    _, sent = written(OperatorEdge(0, 1, 0), placement=(5, 0, 5))
    found = {target: rows["h"] for target, _, rows in sent}
    groups = group_of(HASHES, 3)
    assert found == {0: HASHES[groups == 1].tolist(), 5: HASHES[groups != 1].tolist()}


def test_every_root_has_files_of_its_own_and_one_result_may_have_several(tmp_path: Path) -> None:
    known = Call("not", (Call("is null", (A,)),))
    roots = (Root(0, "x"), Root(0, "y", selection(B, predicate=known)), Root(0, "x"), Root(0, "counted"))
    staging = {name: str(tmp_path / name) for name in "xy"}
    writer, sent = written(roots=roots, staging=staging)
    found = writer.close()
    assert not sent and sorted(found) == ["counted", "x", "y"]
    assert [rows for _, rows, _ in found["x"]] == [4, 4]
    tables = [pq.read_table(tmp_path / "x" / name).to_pydict() for name, _, _ in found["x"]]
    assert tables == [{"a": VALUES[0].to_pylist(), "b": VALUES[1].to_pylist()}] * 2
    ((name, rows, _),) = found["y"]
    assert rows == 3 and pq.read_table(tmp_path / "y" / name).to_pydict() == {"o0": [10, None, 40]}
    assert [(rows, size) for _, rows, size in found["counted"]] == [(4, 0)]


def test_an_error_names_the_columns_of_the_producer() -> None:
    bad = replace(selection(Call("length", (A,))))
    with pytest.raises(ViewError, match=r"in length\(a\)"):
        written(OperatorEdge(0, 1, 0, selection=bad), slots=("s0",))


def test_outputs_have_the_types_of_the_selection() -> None:
    narrow = Selection((A,), pa.schema([("o", pa.int32())]))
    _, sent = written(OperatorEdge(0, 1, 0, selection=narrow), slots=("s0",))
    assert sent[0][2]["s0"] == VALUES[0].to_pylist()
    assert np.array_equal(sent[0][2]["h"], HASHES)
