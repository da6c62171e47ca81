"""Results come in a fixed order, whatever the sizes of blocks and chunks and wherever an epoch stops."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.plan.expression.evaluation import Columns
from spillway.plan.expression.nodes import Call, ColumnRef, Expression
from spillway.state.join.operator import JoinOperator
from spillway.state.join.probe import chunk, probe
from spillway.state.join.production import LEAST_ROWS, Production
from spillway.state.orders.orders import NO_BOUND, Limits
from spillway.state.rows.group import Int64Array
from spillway.state.rows.sorted_rows import SortedRows, sort_rows
from spillway.state.step.operator import WireInput
from spillway.state.step.results import Written

GROUPS = 4
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def rows_of(keys: Sequence[int], width: int = 1) -> SortedRows:
    """Rows (id, text)."""
    hashes = (np.array(keys, dtype=np.uint64) * SPREAD).view(np.int64)
    columns = [pa.array(range(len(keys)), pa.int64()), pa.array(["x" * width] * len(keys), pa.string())]
    return sort_rows(hashes, pa.RecordBatch.from_arrays(columns, names=["id", "text"]))


def operator(inputs: int, residual: Expression | None = None) -> JoinOperator:
    return JoinOperator(
        inputs=tuple(WireInput(str(number), ("id", "text"), ("s0", "s1")) for number in range(inputs)),
        outputs=tuple(ColumnRef(number, 0) for number in range(inputs)),
        residual=residual,
        key_columns=((),) * inputs,
        groups=GROUPS,
        result_schema=pa.schema([(str(number), pa.int64()) for number in range(inputs)]),
    )


class Collector:
    """Keeps what is written, piece by piece."""

    def __init__(self) -> None:
        self.rows = 0
        self.group_results: Int64Array = np.zeros(GROUPS, dtype=np.int64)
        self.lineage_results: dict[int, Int64Array] = {}
        self.pieces: list[list[tuple[int, ...]]] = []

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None:
        values = [columns(output).to_pylist() for output in outputs if isinstance(output, ColumnRef)]
        self.pieces.append(list(zip(*values, strict=True)))

    def close(self) -> Written:
        return ()

    def results(self) -> list[tuple[int, ...]]:
        return [result for piece in self.pieces for result in piece]


def production(
    inputs: int, limits: Limits, residual: Expression | None = None
) -> tuple[Production, Collector]:
    collector = Collector()
    return Production(operator(inputs, residual), collector, limits, lambda: None), collector


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    keys = st.lists(st.integers(0, 4), max_size=30)
    inputs = draw(st.integers(2, 3))
    small = st.sampled_from([1, 2, 5, 40])
    return {
        "driving": draw(st.integers(0, inputs - 1)),
        "driver": draw(keys),
        "others": [[draw(keys) for _ in range(draw(st.integers(0, 2)))] for _ in range(inputs)],
        "limits": Limits(
            results=draw(st.sampled_from([1, 7, 100, 100_000])),
            chunk_rows=draw(small),
            block_rows=draw(small),
            gather_rows=draw(small),
            chunk_bytes=draw(st.sampled_from([1, 3_000, NO_BOUND])),
            gather_bytes=draw(st.sampled_from([1, 300, NO_BOUND])),
        ),
    }


@given(cases())
def test_an_epoch_may_stop_after_any_result_and_the_next_goes_on(case: dict[str, Any]) -> None:
    driver, driving, limits = rows_of(case["driver"]), case["driving"], case["limits"]
    others = [[rows_of(keys) for keys in of_input] for of_input in case["others"]]
    others[driving] = []
    found = probe(driver, driving, others, GROUPS, ((),) * len(others))
    wanted: list[tuple[int, ...]] = []
    if found.total:
        whole = chunk(found, 0, found.total)
        wanted = list(
            zip(*(whole.column(number, 0).to_pylist() for number in range(len(others))), strict=True)
        )
    got: list[tuple[int, ...]] = []
    done = emitted = 0
    while done < driver.rows:
        made, collector = production(len(others), limits)
        more, emitted = made.produce(driving, driver.slice(done, driver.rows), others, emitted)
        done += more
        assert collector.results() == wanted[len(got) : len(got) + limits.results]
        assert made.results_left == limits.results - len(collector.results())
        got += collector.results()
    assert (got, emitted) == (wanted, 0)


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (Limits(chunk_rows=50), 50),
        (Limits(chunk_rows=50, chunk_bytes=72 * 40), 40),  # two numbers of 8 bytes, and 64 to find them
        (Limits(chunk_rows=50, chunk_bytes=1), LEAST_ROWS),
        (Limits(chunk_rows=3, chunk_bytes=1), 3),
    ],
)
def test_chunks_are_as_large_as_memory_allows(limits: Limits, most: int) -> None:
    made, collector = production(2, limits)
    made._used = (ColumnRef(0, 0),)
    assert made.produce(0, rows_of([1] * 10), [[], [rows_of([1] * 30)]], 0) == (10, 0)
    sizes = [len(piece) for piece in collector.pieces]
    assert sum(sizes) == 300
    assert set(sizes[:-1]) == {most}


def test_the_inputs_share_the_memory_for_matches() -> None:
    """Two others with 20 rows of 17 bytes each and 4 for an offset: 420 bytes each, 840 together."""
    halves = [rows_of([1] * 10), rows_of([1] * 10)]
    sizes = [halves[0].row_bytes * 20 for _ in range(2)]
    for least, is_copied in ((2 * max(sizes), True), (2 * max(sizes) - 2, False)):
        made, _ = production(3, Limits(gather_bytes=int(least)))
        others = [[], halves, halves]
        found = probe(rows_of([1]), 0, others, GROUPS, ((),) * 3, made._gathering(others))
        assert found.is_copied == is_copied
    made, _ = production(2, Limits(gather_bytes=int(max(sizes))))
    assert probe(rows_of([1]), 0, others[:2], GROUPS, ((), ()), made._gathering(others[:2])).is_copied


def test_blocks_shrink_where_matches_cannot_be_copied_and_grow_again() -> None:
    """Rows of one key meet a thousand, too many to copy; the rows after them have one match each."""
    others = [[], [rows_of([1] * 500), rows_of([*([1] * 500), *range(2, 2_002)])]]
    made, collector = production(2, Limits(block_rows=400, gather_rows=900))
    seen: list[int] = []
    made.sample = lambda: seen.append(made._block_rows)
    assert made.produce(0, rows_of([1] * 400), others, 0) == (400, 0)
    assert list(dict.fromkeys(seen))[:4] == [400, 100, 25, LEAST_ROWS]
    assert made.produce(0, rows_of(range(2, 2_002)), others, 0) == (2_000, 0)
    assert seen[-1] == 400
    assert len(collector.results()) == 400 * 1_000 + 2_000


def test_blocks_stay_whole_where_all_matches_are_in_one_segment() -> None:
    """Nothing is copied but chunks, however many matches there are."""
    others = [[], [rows_of([1] * 1_000)]]
    made, collector = production(2, Limits(block_rows=400, gather_rows=900, chunk_rows=1_000))
    seen: list[int] = []
    made.sample = lambda: seen.append(made._block_rows)
    assert made.produce(0, rows_of([1] * 400), others, 0) == (400, 0)
    assert set(seen) == {400}
    assert max(len(piece) for piece in collector.pieces) == 1_000
    assert len(collector.results()) == 400 * 1_000


def test_a_residual_uses_columns_that_results_do_not() -> None:
    residual = Call("equals", (ColumnRef(0, 1), ColumnRef(1, 1)))
    made, _ = production(2, Limits(), residual)
    assert set(made._used) == {ColumnRef(0, 0), ColumnRef(1, 0), ColumnRef(0, 1), ColumnRef(1, 1)}
