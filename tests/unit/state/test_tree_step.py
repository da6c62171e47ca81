"""An epoch of a tree counts only if all its parts rest on the same attempts."""

import numpy as np
import pytest

from spillway.state.exchange import folded
from spillway.state.tree_operator import TreeOperator
from spillway.state.tree_step import Delivery, TornEpochError, agreed, together


def test_parts_that_read_different_attempts_are_no_epoch() -> None:
    commits = {
        0: Delivery(seen=frozenset({(0, 0, "first"), (0, 1, "x"), (1, 0, "y")})),
        1: Delivery(seen=frozenset({(0, 0, "again"), (0, 1, "x"), (1, 1, "z")})),
    }
    with pytest.raises(TornEpochError, match="level 0 of processor 0"):
        agreed(TreeOperator((), ()), commits)


def test_a_delivery_survives_its_journey() -> None:
    one = Delivery({2: ("f1", "f2")}, {0: "{}"}, 7, frozenset({(0, 1, "a")}))
    assert Delivery.from_json(one.to_json()) == one


def test_deliveries_come_together() -> None:
    first = Delivery({1: ("b",)}, {0: "r"}, 5, frozenset({(0, 0, "a")}))
    second = Delivery({1: ("a",), 2: ("c",)}, {}, 0, frozenset({(0, 1, "b")}))
    both = together([first, second])
    assert both.parcels == {1: ("a", "b"), 2: ("c",)}
    assert (both.reports, both.input_rows) == ({0: "r"}, 5)
    assert both.seen == first.seen | second.seen


def test_the_order_of_key_parts_matters_to_their_hash() -> None:
    left, right = np.array([1, 2], dtype=np.int64), np.array([2, 1], dtype=np.int64)
    assert list(folded([left, right])) != list(folded([right, left]))
    assert list(folded([left])) == [1, 2]
