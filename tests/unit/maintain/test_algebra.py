"""The local algebra against counters: joins by binary search and by hashing, sums, keys that are equal."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.maintain.algebra import AlgebraBySize, ArrowAlgebra, consolidate, distinct, equal, fitting, join

NAN = float("nan")
KEYS = {
    "integers of two sizes": (st.integers(-2, 2), pa.int64(), pa.int16()),
    "large integers": (st.sampled_from([-(2**63), 2**63 - 1, 0]), pa.int64(), pa.int64()),
    "doubles": (st.sampled_from([0.0, -0.0, NAN, 1.5]), pa.float64(), pa.float64()),
    "text": (st.sampled_from(["", "a", "b"]), pa.string(), pa.string()),
}
WEIGHTS = st.integers(-2, 2).filter(bool)


def table(names: Sequence[str], rows: list[tuple[Any, ...]], types: Sequence[pa.DataType]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(names))


def same(left: Any, right: Any) -> bool:
    return left is not None and right is not None and (left == right or (left != left and right != right))


def bag(found: pa.Table) -> Counter[str]:
    total: Counter[str] = Counter()
    for *values, weight in zip(*(column.to_pylist() for column in found.columns), strict=True):
        total[str(values)] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("width", [0, 1, 2])
@given(data=st.data())
def test_joins_are_nested_loops(kind: str, width: int, data: st.DataObject) -> None:
    values, left_type, right_type = KEYS[kind]
    row = st.tuples(st.none() | values, st.none() | values, WEIGHTS)
    left, right = data.draw(st.lists(row, max_size=6)), data.draw(st.lists(row, max_size=6))
    delta = table(("l0", "l1", "weight"), left, (left_type, left_type, pa.int64()))
    state = table(("r0", "r1", "weight"), right, (right_type, right_type, pa.int64()))
    pairs = [("l0", "r0"), ("l1", "r1")][:width]
    expected: Counter[str] = Counter()
    for ours in left:
        for theirs in right:
            if all(same(ours[place], theirs[place]) for place in range(width)):
                expected[str([*ours[:2], *theirs[:2]])] += ours[2] * theirs[2]
    found = join(delta, state, pairs)
    assert found.column_names == ["l0", "l1", "r0", "r1", "weight"]
    assert bag(found) == Counter({text: weight for text, weight in expected.items() if weight})


@given(
    st.lists(st.tuples(st.sampled_from([None, 0.0, -0.0, NAN, 1.0]), st.none() | st.integers(0, 1), WEIGHTS))
)
def test_equal_rows_are_summed_with_one_zero(rows: list[tuple[Any, ...]]) -> None:
    found = consolidate(table(("a", "b", "weight"), rows, (pa.float64(), pa.int64(), pa.int64())))
    expected: Counter[str] = Counter()
    for *values, weight in rows:
        zeroed = [0.0 if str(value) == "-0.0" else value for value in values]
        expected[str(zeroed)] += weight
    assert bag(found) == Counter({text: weight for text, weight in expected.items() if weight})
    assert found.num_rows == len(bag(found))


def test_keys() -> None:
    left = pa.chunked_array([pa.array([0.0, NAN, None, 1.0])])
    right = pa.chunked_array([pa.array([-0.0, NAN, None, 2.0])])
    assert equal(left, right).to_pylist() == [True, True, False, False]
    keys = pa.table({"a": [1, 1, None], "b": ["x", "x", "y"]})
    assert distinct(keys).to_pylist() == [{"a": 1, "b": "x"}]


def test_large_tables_go_elsewhere() -> None:
    class Elsewhere(ArrowAlgebra):
        rows = joined = 0

        def consolidate(self, table: pa.Table) -> pa.Table:
            Elsewhere.rows += table.num_rows
            return super().consolidate(table)

        def join(self, delta: pa.Table, state: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table:
            Elsewhere.joined += 1
            return super().join(delta, state, pairs)

    algebra = AlgebraBySize(Elsewhere(), 2)
    for size in (1, 2, 3):
        rows = [(number, 1) for number in range(size)]
        assert algebra.consolidate(table(("a", "weight"), rows, (pa.int64(), pa.int64()))).num_rows == size
    assert Elsewhere.rows == 3
    single = table(("a", "weight"), [(1, 1)], (pa.int64(), pa.int64()))
    two = table(("b", "weight"), [(1, 1), (1, 2)], (pa.int64(), pa.int64()))
    assert algebra.join(single, two.slice(0, 1), [("a", "b")]).num_rows == 1 and Elsewhere.joined == 0
    assert algebra.join(single, two, [("a", "b")]).num_rows == 2 and Elsewhere.joined == 1


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_integers_that_do_not_fit_a_smaller_key_are_null(bits: int) -> None:
    most = 2 ** (bits - 1) - 1
    kind = {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}[bits]
    values = pa.chunked_array([pa.array([most, most + 1, -most - 1, -most - 2, 0, None], pa.int64())])
    assert fitting(values, kind) == pa.chunked_array([pa.array([most, None, -most - 1, None, 0, None], kind)])
    small = pa.chunked_array([pa.array([most, -most - 1, None], kind)])
    assert fitting(small, pa.int64()) == small.cast(pa.int64())
    assert fitting(small, kind) is small
