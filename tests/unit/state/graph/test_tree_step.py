"""An epoch of a tree counts only if all its parts rest on the same attempts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.model import from_text, to_text
from spillway.state.graph.arrival import MOST_SLICES, by_owner
from spillway.state.graph.graph import Graph
from spillway.state.graph.level_message import LevelMessage, TornEpochError, consistent_reports, together
from spillway.state.rows.group import folded


def test_parts_that_read_different_attempts_are_no_epoch() -> None:
    commits = {
        0: LevelMessage(seen=frozenset({(0, 0, "first"), (0, 1, "x"), (1, 0, "y")})),
        1: LevelMessage(seen=frozenset({(0, 0, "again"), (0, 1, "x"), (1, 1, "z")})),
    }
    with pytest.raises(TornEpochError, match="level 0 of processor 0"):
        consistent_reports(Graph((), ()), commits)


def test_a_delivery_survives_its_journey() -> None:
    message = LevelMessage({2: ("f1", "f2")}, {0: "{}"}, 7, frozenset({(0, 1, "a")}))
    assert from_text(LevelMessage, to_text(message)) == message


def test_deliveries_come_together() -> None:
    first = LevelMessage({1: ("b",)}, {0: "r"}, 5, frozenset({(0, 0, "a")}))
    second = LevelMessage({1: ("a",), 2: ("c",)}, {}, 0, frozenset({(0, 1, "b")}))
    both = together([first, second])
    assert both.files == {1: ("a", "b"), 2: ("c",)}
    assert (both.reports, both.input_rows) == ({0: "r"}, 5)
    assert both.seen == first.seen | second.seen


def test_the_order_of_key_parts_matters_to_their_hash() -> None:
    left, right = np.array([1, 2], dtype=np.int64), np.array([2, 1], dtype=np.int64)
    assert list(folded([left, right])) != list(folded([right, left]))
    assert list(folded([left])) == [1, 2]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=2 * MOST_SLICES))
def test_rows_of_a_batch_come_to_their_joins_once_and_in_order(runs: list[tuple[int, int]]) -> None:
    """Few runs of rows for one join are cut as they lie, many are collected."""
    owners = np.repeat([owner for owner, _ in runs], [rows for _, rows in runs]).astype(np.int64)
    everything = np.arange(len(owners))
    found: dict[int, list[int]] = {}
    for owner, rows in by_owner(owners):
        assert owner not in found or isinstance(rows, slice)
        found.setdefault(owner, []).extend(everything[rows].tolist())
    assert found == {int(owner): np.flatnonzero(owners == owner).tolist() for owner in np.unique(owners)}
