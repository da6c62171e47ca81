"""Views taken apart: classes, filters, residual predicates, refusals; and sketches against counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.compute.compute_view import ComputeView, read_view
from spillway.compute.graph_builder import build_graph
from spillway.compute.sketch import BUCKETS, KeySketch, RelationStatistics, join_rows
from spillway.errors import JobError, ViewError
from spillway.model.schema import parse_ddl
from spillway.model.view import View
from spillway.workload.permutation import combine

CATALOG = {
    "a": parse_ddl("k bigint, x int, s string"),
    "b": parse_ddl("k bigint, x int, y bigint"),
    "c": parse_ddl("k bigint, y bigint, d double"),
}


def read(sql: str) -> ComputeView:
    return read_view(View.sql(sql), CATALOG)


def test_equalities_of_one_type_are_one_class() -> None:
    view = read("SELECT a.s FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k")
    assert [key.label for key in view.keys] == ["a.k = b.k = c.k"]
    assert [member for member, _ in view.keys[0].members] == [0, 1, 2]


def test_equalities_of_different_types_are_not_transitive() -> None:
    view = read("SELECT a.s FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.d")
    assert [key.label for key in view.keys] == ["a.k = b.k", "b.k = c.d"]


def test_names_and_texts_with_backquotes_are_not_confused() -> None:
    """`sel``ect` is another column than `select`, and '`x`' another text than 'x'."""
    catalog = {
        "a": parse_ddl("`select` int, `sel``ect` double, s string"),
        "b": CATALOG["b"],
        "c": CATALOG["c"],
    }
    sql = "SELECT a.s FROM a JOIN b ON a.`select` = b.x JOIN c ON a.`sel``ect` = c.d"
    sql += " WHERE a.s <> '`x`' AND a.s <> 'x'"
    view = read_view(View.sql(sql), catalog)
    assert [key.label for key in view.keys] == ["a.select = b.x", "a.`sel``ect` = c.d"]
    assert view.relations[0].filter == "`s` <> '`x`' AND `s` <> 'x'"


def test_two_columns_of_one_relation_in_a_class_are_a_filter() -> None:
    view = read("SELECT a.s FROM a JOIN b ON a.k = b.k AND a.k = b.y")
    assert view.relations[1].filter == "`k` = `y`"
    assert view.residual == ()


def test_filters_residuals_and_expressions() -> None:
    view = read(
        "SELECT upper(a.s) || b.x AS t FROM a JOIN b ON a.k + 1 = b.k WHERE a.x > 1 AND a.x < b.x OR FALSE"
    )
    assert [key.label for key in view.keys] == ["a.k + 1 = b.k"]
    assert [one.mask for one in view.residual] == [0b11]
    assert view.relations[0].filter is None
    assert [name for name, _ in view.outputs] == ["t"]


def test_a_window_is_refused() -> None:
    with pytest.raises(ViewError, match=r"a has a window \[RANGE\]"):
        read("SELECT a.s FROM a [RANGE 2 MINUTES] JOIN b ON a.k = b.k")


def statistics(*rows: int) -> list[RelationStatistics]:
    empty = KeySketch(np.zeros(BUCKETS), 10, 10.0)
    return [
        RelationStatistics(one, 40.0, {f"r{n}_{m}": empty for m in range(4)}) for n, one in enumerate(rows)
    ]


def test_given_numbers_win() -> None:
    view = read("SELECT a.s FROM a JOIN b ON a.k = b.k")
    graph = build_graph(view, statistics(10, 20), rows={"a": 5e6}, selectivities={"b a": 0.25})
    assert [one.rows for one in graph.relations] == [5e6, 20.0]
    assert graph.classes[0].selectivity == {(0, 1): 0.25}


def test_given_numbers_of_unknown_things_are_refused() -> None:
    view = read("SELECT a.s FROM a JOIN b ON a.k = b.k")
    with pytest.raises(JobError, match=r"\[compute.rows\] z is not a relation"):
        build_graph(view, statistics(10, 20), rows={"z": 1})
    with pytest.raises(JobError, match=r'\[compute.selectivity\] "a z" is not an equality'):
        build_graph(view, statistics(10, 20), selectivities={"a z": 1})


def sketch(keys: np.ndarray) -> KeySketch:
    """As the Spark job makes it, with another hash."""
    hashes = combine(np.array([7], dtype=np.uint64), np.array([1], dtype=np.uint64), keys.astype(np.uint64))
    signs = np.where((hashes >> np.uint64(40)) & np.uint64(1), 1.0, -1.0)
    counters = np.bincount((hashes % np.uint64(BUCKETS)).astype(int), signs, minlength=BUCKETS)
    return KeySketch(counters, len(keys), float(len(np.unique(keys))))


@given(st.integers(0, 10_000), st.sampled_from([50, 5_000, 80_000]), st.sampled_from([0.0, 1.0, 3.0]))
def test_sketches_know_the_size_of_a_join(seed: int, domain: int, skew: float) -> None:
    """Within six standard errors of the truth, under skew and where keys are only partly shared."""
    random = np.random.default_rng(seed)
    left, right = ((domain * random.random(20_000) ** (1 + skew)).astype(np.int64) for _ in range(2))
    counts = [np.bincount(one, minlength=domain) for one in (left, right)]
    truth = float(counts[0] @ counts[1])
    error = np.sqrt(float(counts[0] @ counts[0]) * float(counts[1] @ counts[1]) / BUCKETS)
    assert abs(join_rows(sketch(left), sketch(right)) - truth) <= 6 * error


def test_nothing_joins_with_an_empty_relation() -> None:
    assert join_rows(sketch(np.arange(5)), sketch(np.arange(0))) == 0.0
