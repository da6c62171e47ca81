"""Parcels between tasks: nothing is lost, missing ones are noticed, and too many are said to be."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import StateError
from spillway.model import from_text, to_text
from spillway.state.graph.graph import Graph
from spillway.state.graph.inbox import Inbox, OverflowedEpochError
from spillway.state.graph.level_message import LevelMessage, TornEpochError, consistent_reports
from spillway.state.graph.outgoing import Outgoing, Quota
from spillway.state.graph.parcel import SCAN, Parcel, decode_parcel, encoded_rows
from spillway.state.graph.spool import Spool
from spillway.state.rows.group import folded

MUCH = 1 << 40


def rows(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"v": pa.array(values, pa.int64())})


def values_of(inbox: Inbox, operator: int) -> list[int]:
    return [value for batch in inbox.rows_of(operator) for value in batch.column("v").to_pylist()]


def test_a_parcel_survives_its_journey() -> None:
    parcel = Parcel(2, 1, "attempt", 3, 4, False, '{"a": "ü"}', encoded_rows([rows(1, 2), rows(3)]))
    found = decode_parcel(parcel.encoded())
    assert [batch.to_pydict() for batch in found.batches()] == [{"v": [1, 2]}, {"v": [3]}]
    assert (found.stage, found.writer, found.attempt, found.operator) == (2, 1, "attempt", 3)
    assert (found.arrived, found.overflowed, found.message) == (4, False, '{"a": "ü"}')
    assert found.rows.address % 8 == 0  # columns are read where they lie


def test_a_message_survives_its_journey() -> None:
    message = LevelMessage({0: "{}"}, 7, frozenset({(0, 1, "a")}))
    assert from_text(LevelMessage, to_text(message)) == message


def test_parts_that_read_different_attempts_are_no_epoch() -> None:
    commits = {
        0: LevelMessage(seen=frozenset({(SCAN, 0, "s"), (0, 0, "first"), (0, 1, "x"), (1, 0, "y")})),
        1: LevelMessage(seen=frozenset({(SCAN, 0, "s"), (0, 0, "again"), (0, 1, "x"), (1, 1, "z")})),
    }
    with pytest.raises(TornEpochError, match="task 0 of stage 0"):
        consistent_reports(Graph((), ()), commits)


def test_the_order_of_key_parts_matters_to_their_hash() -> None:
    left, right = np.array([1, 2], dtype=np.int64), np.array([2, 1], dtype=np.int64)
    assert list(folded([left, right])) != list(folded([right, left]))
    assert list(folded([left])) == [1, 2]


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 2), st.lists(st.integers(), max_size=5)), max_size=40
    ),
    st.integers(1, 200),
    st.booleans(),
    st.integers(0, 100),
    st.randoms(use_true_random=False),
)
def test_rows_arrive_once_in_any_order_of_parcels(
    sent: list[tuple[int, int, list[int]]], size: int, early: bool, spool_bytes: int, order: object
) -> None:
    """Whatever the size of parcels, who is asked first, and where they wait."""
    sent = [(target, op, [v % 1000 for v in values]) for target, op, values in sent]
    quota = Quota(210, size, {0: 3, 1: 1})
    outgoing = Outgoing(SCAN, 0, "a", quota, {0: [0, 1, 2], 1: [0, 1, 2]}, spool_bytes)
    frames: dict[int, list[bytes]] = {0: [], 1: []}
    for target, operator, values in sent:
        outgoing.write(target, operator, rows(*values), len(values))
        for to, data in outgoing.sealed() if early else ():
            frames[to].append(data)
    for to, data in outgoing.rest({1: to_text(LevelMessage(input_rows=5))}):
        frames[to].append(data)
    assert (len(frames[0]), len(frames[1])) == (213, 211)
    for target in (0, 1):
        order.shuffle(frames[target])
        inbox = Inbox(iter(frames[target]), 210, target, spool_bytes)
        assert inbox.own_message().input_rows == (5 if target else 0)
        operators = [0, 1, 2]
        order.shuffle(operators)
        for operator in operators:
            expected = [v for to, op, values in sent for v in values if (to, op) == (target, operator)]
            assert Counter(values_of(inbox, operator)) == Counter(expected)
        inbox.finish()
        assert inbox.arrived == sum(len(values) for to, _, values in sent if to == target)
        assert inbox.seen == {(SCAN, 0, "a")}


def test_rows_of_one_task_wait_for_an_operator_of_the_same_stage() -> None:
    inbox = Inbox(iter([Parcel(SCAN, 0, "a", 1, rows=encoded_rows([rows(7)])).encoded()]), 1, 0, 0)
    assert values_of(inbox, 0) == []
    inbox.put(1, rows(8))
    assert sorted(values_of(inbox, 1)) == [7, 8]
    inbox.finish()


def test_missing_parcels_are_noticed() -> None:
    frames = [Parcel(SCAN, 0, "a", 0, rows=encoded_rows([rows(1)])).encoded()]
    inbox = Inbox(iter(frames), 2, 3, MUCH)
    assert values_of(inbox, 0) == [1]
    with pytest.raises(StateError, match="processor 3 got 1 of 2 parcels"):
        inbox.finish()


def test_rows_that_nobody_reads_are_noticed() -> None:
    frames = [Parcel(SCAN, 0, "a", 4, rows=encoded_rows([rows(1)])).encoded()]
    inbox = Inbox(iter(frames), 1, 0, MUCH)
    assert values_of(inbox, 0) == []
    with pytest.raises(StateError, match="no operator has read"):
        inbox.finish()


@pytest.mark.parametrize("early", [True, False])
def test_who_has_more_to_send_than_the_quota_says_so_to_all(early: bool) -> None:
    outgoing = Outgoing(0, 1, "a", Quota(3, 1), {0: [0], 1: [0]}, MUCH)
    frames: dict[int, list[bytes]] = {0: [], 1: []}
    for value in range(3):
        outgoing.write(0, 0, rows(value))
        for target, data in outgoing.sealed() if early else ():
            frames[target].append(data)
    for target, data in outgoing.rest({}):
        frames[target].append(data)
    assert {target: len(sent) for target, sent in frames.items()} == {0: 3, 1: 3}
    for target in (0, 1):
        with pytest.raises(OverflowedEpochError):
            values_of(Inbox(iter(frames[target]), 3, 0, MUCH), 0)


@given(st.lists(st.binary(max_size=20)), st.integers(0, 60), st.integers(0, 5))
def test_a_spool_gives_back_what_it_got(sent: list[bytes], limit: int, early: int) -> None:
    spool = Spool(limit)
    found = []
    for number, data in enumerate(sent):
        spool.append(data)
        if early and number % early == 0:
            found += list(spool.drain())
    assert found + list(spool.drain()) == sent
    assert len(spool) == 0
