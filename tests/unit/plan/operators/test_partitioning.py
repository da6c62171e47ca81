"""Every result of a tree is found in one group, however its rows are spread."""

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import ViewError
from spillway.model.groups import members
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.explain.explanation import explain
from spillway.plan.operators.partitioning import (
    JOIN_KINDS,
    MULTI_PARTITION,
    REPLICATE,
    TREE,
    Grid,
    partition_classes,
)
from spillway.plan.operators.tree import TreePlan
from spillway.plan.rules.planner import plan_view

CATALOG = dict.fromkeys("abcde", (Column("x", "bigint"), Column("y", "bigint")))
SQL = "SELECT a.y AS m FROM a, b, c, d WHERE a.x = b.x AND b.x = c.x AND c.y = d.x"


@given(st.integers(1, 1000), st.integers(1, 4))
def test_shares_make_up_all_groups_and_are_as_equal_as_divisors_allow(groups: int, classes: int) -> None:
    grid = Grid.of(range(classes), groups)
    assert prod(grid.shares) == groups
    assert list(grid.shares) == sorted(grid.shares, reverse=True)


def test_shares_of_a_power_of_two() -> None:
    assert Grid.of((0, 1), 128).shares == (16, 8)
    assert Grid.of((0, 1, 2), 64).shares == (4, 4, 4)


@given(st.sampled_from([1, 6, 12, 30]), st.lists(st.sets(st.integers(0, 2)), min_size=1, max_size=4))
def test_rows_that_join_meet_in_one_group(groups: int, leaves: list[set[int]]) -> None:
    grid = Grid.of((0, 1, 2), groups)
    values = (5, 7, 11)  # of the three classes, in one result
    cells = []
    for classes in leaves:
        sides = [
            [values[one] % share * weight] if one in classes else [n * weight for n in range(share)]
            for one, share, weight in zip(grid.classes, grid.shares, grid.weights, strict=True)
        ]
        cells.append({sum(cell) for cell in product(*sides)})
        assert len(cells[-1]) == grid.copies(classes)
        assert len(cells[-1] & set(members(grid.first_copies(classes)))) == 1
    meeting = set.intersection(*cells)
    assert len(meeting) == grid.copies(set.union(*leaves))


def test_the_class_of_most_inputs_is_replicated_by() -> None:
    leaves = [{0}, {0, 1}, {1}, {1}]
    assert partition_classes(REPLICATE, leaves) == (1,)
    assert partition_classes(MULTI_PARTITION, leaves) == (0, 1)
    assert partition_classes(TREE, leaves) == ()


def test_a_plan_knows_how_its_rows_are_spread() -> None:
    plans = [plan_view(View.sql(SQL).with_join(kind), CATALOG) for kind in JOIN_KINDS]
    assert len({plan.fingerprint for plan in plans}) == 3
    assert [plan.partition for plan in plans if isinstance(plan, TreePlan)] == [(), (0,), (0, 1)]
    text = explain(plans[2], processors=2, groups=32)
    assert (
        "  by         multi-partition: a.x in 8 x c.y in 4; a in 4 copies, b in 4 copies, d in 8 copies"
        in text
    )
    assert "  or         replicate: a.x in 32; d in 32 copies" in text
    assert "  or         tree: key of each join; no copies" in text


def test_a_spread_that_there_is_not() -> None:
    with pytest.raises(ViewError, match="join = 'broadcast': must be one of tree, replicate"):
        plan_view(View.sql(SQL).with_join("broadcast"), CATALOG)
