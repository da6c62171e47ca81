"""The search for a tree finds what trying all trees finds, and decides ties as it says."""

from collections.abc import Iterator, Mapping, Sequence
from math import log1p
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kit.examples import tries
from spillway.plan.operators.tree import shape_text
from spillway.plan.operators.tree_choice import Shape, SizedTree
from spillway.plan.rules.input_statistics import InputStatistics
from spillway.plan.rules.join_shape import given_joins
from spillway.plan.rules.join_sizes import JoinSizes
from spillway.plan.rules.tree_search import BEST, TreeSearch

Classes = Sequence[frozenset[int]]


@st.composite
def views(draw: st.DrawFn, least: int, most: int) -> tuple[Classes, list[InputStatistics]]:
    """Inputs with classes, and numbers of them that may be unknown."""
    count = draw(st.integers(least, most))
    classes = [draw(st.frozensets(st.integers(0, 4), min_size=1, max_size=3)) for _ in range(count)]
    assume(is_connected(classes))
    inputs = []
    for of_input in classes:
        rows = draw(st.integers(1, 10**6))
        distinct = {n: float(draw(st.integers(1, rows))) for n in sorted(of_input) if draw(st.booleans())}
        inputs.append(InputStatistics(draw(st.integers(0, rows)), rows, distinct))
    return classes, inputs


def is_connected(classes: Classes) -> bool:
    reached, waiting = classes[0], list(classes[1:])
    while near := [of_input for of_input in waiting if of_input & reached]:
        reached = reached.union(*near)
        waiting = [of_input for of_input in waiting if not of_input & reached]
    return not waiting


def search(classes: Classes, inputs: Sequence[InputStatistics], filtered: str = "") -> list[SizedTree]:
    names = "abcdefghijklmnop"[: len(inputs)]
    sizes = JoinSizes(inputs, classes)
    return TreeSearch(names, [name in filtered for name in names], sizes).best()


def divisions(items: tuple[Any, ...]) -> Iterator[list[tuple[Any, ...]]]:
    """All divisions into parts."""
    if not items:
        yield []
        return
    first, others = items[0], items[1:]
    for chosen in range(1 << len(others)):
        part = (first, *(other for n, other in enumerate(others) if chosen >> n & 1))
        rest = tuple(other for n, other in enumerate(others) if not chosen >> n & 1)
        for divided in divisions(rest):
            yield [part, *divided]


def all_trees(inputs: tuple[int, ...], classes: Classes, sizes: JoinSizes, root: bool) -> Iterator[float]:
    """The work of every tree, by its definition."""
    mask = sum(1 << number for number in inputs)
    if len(inputs) == 1:
        yield sizes.rows(mask)
        return
    for parts in divisions(inputs):
        if len(parts) < 2 or not all(is_connected([classes[n] for n in part]) for part in parts):
            continue
        shared = frozenset.intersection(*(frozenset().union(*(classes[n] for n in part)) for part in parts))
        if not shared:
            continue
        masks = [sum(1 << number for number in part) for part in parts]
        own = sizes.candidates(masks, shared) + (0 if root else sizes.rows(mask))
        below: list[float] = [0.0]
        for part in parts:
            below = [work + more for work in below for more in all_trees(part, classes, sizes, False)]
        yield from (own + work for work in below)


@tries(2)
@given(views(2, 5))
def test_no_tree_has_less_work(view: tuple[Classes, list[InputStatistics]]) -> None:
    classes, inputs = view
    best = search(classes, inputs)
    sizes = JoinSizes(inputs, classes)
    works = sorted(all_trees(tuple(range(len(inputs))), classes, sizes, True))
    rows = sum(sizes.rows(1 << number) for number in range(len(inputs)))
    assert len(best) == min(BEST, len(works))
    for tree, least in zip(best, works, strict=False):  # each level may give away a hundredth
        assert log1p(tree.work + rows) - log1p(least) <= 0.01 * len(inputs)
        assert any(tree.work + rows == pytest.approx(work) for work in works)


@tries(2)
@given(views(3, 12))
def test_every_tree_can_be_joined(view: tuple[Classes, list[InputStatistics]]) -> None:
    classes, inputs = view
    names = "abcdefghijkl"[: len(inputs)]
    trees = search(classes, inputs)
    assert trees == search(classes, inputs)
    assert len({shape_text(tree.shape) for tree in trees}) == len(trees)
    for tree in trees:
        joins = given_joins(tree.shape, names, classes)
        assert len(joins) == len(tree.joins)
        assert all(join.candidates >= join.results > 0 for join in tree.joins)


def shapes(classes: Classes, inputs: Sequence[InputStatistics], filtered: str = "") -> list[Shape]:
    return [tree.shape for tree in search(classes, inputs, filtered)]


CHAIN = [frozenset({0}), frozenset({0, 1}), frozenset({1, 2}), frozenset({2})]
A, B, C, D = 1, 2, 4, 8


class GivenSizes(JoinSizes):
    """Sizes by the inputs that are joined; what is not given is 100."""

    def __init__(self, classes: Classes, rows: Mapping[int, float], candidates: Mapping[int, float]) -> None:
        super().__init__([InputStatistics(100, 100, {}) for _ in classes], classes)
        self.given_rows, self.given_candidates = rows, candidates

    def rows(self, mask: int) -> float:
        return self.given_rows.get(mask, 100)

    def candidates(self, parts: Sequence[int], shared: frozenset[int]) -> float:
        return self.given_candidates.get(sum(parts), self.rows(sum(parts)))


def by_sizes(inputs: int, rows: Mapping[int, float], candidates: Mapping[int, float] | None = None) -> Shape:
    sizes = GivenSizes(CHAIN[:inputs], rows, candidates or {})
    return TreeSearch("abcd"[:inputs], [False] * inputs, sizes).best()[0].shape


def test_rows_that_are_kept_count_as_candidates_do() -> None:
    candidates = {A | B: 1000, B | C: 900}
    assert by_sizes(3, {A | B: 800, B | C: 800}, candidates) == ("a", ("b", "c"))
    assert by_sizes(3, {A | B: 100, B | C: 800}, candidates) == (("a", "b"), "c")


def test_a_little_less_work_is_no_reason_for_another_level() -> None:
    bushy = ("a", "b"), ("c", "d")
    assert by_sizes(4, {A | B | C: 99.9}) == bushy
    assert by_sizes(4, {A | B | C: 1}) == ((("a", "b"), "c"), "d")
    large = dict.fromkeys((A, B, C, D), 1e6)
    assert by_sizes(4, {A | B | C: 1, **large}) == bushy


def test_one_class_is_one_join() -> None:
    inputs = [InputStatistics(1e6, 1e6, {0: 10}), *[InputStatistics(100, 100, {0: 100})] * 3]
    assert shapes([frozenset({0})] * 4, inputs)[0] == ("a", "b", "c", "d")


def test_fewer_levels_win_where_work_is_equal() -> None:
    inputs = [InputStatistics(100, 100, dict.fromkeys(of_input, 100.0)) for of_input in CHAIN]
    assert shapes(CHAIN, inputs)[0] == (("a", "b"), ("c", "d"))


def test_the_filtered_input_then_the_first_is_joined_first_where_work_is_equal() -> None:
    chain = [frozenset({0}), frozenset({0, 1}), frozenset({1})]
    inputs = [InputStatistics(100, 100, dict.fromkeys(of_input, 100.0)) for of_input in chain]
    assert shapes(chain, inputs) == [(("a", "b"), "c"), ("a", ("b", "c"))]
    assert shapes(chain, inputs, "c") == [("a", ("b", "c")), (("a", "b"), "c")]
