"""What a step counts per group, and the names of the files that an attempt may create."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from spillway.plan.expression.nodes import ColumnRef
from spillway.state.join.operator import JoinOperator
from spillway.state.orders.orders import Limits, Orders
from spillway.state.rows.group import group_starts
from spillway.state.rows.sorted_rows import SortedRows
from spillway.state.step.lineage import Lineage
from spillway.state.step.operator import WireInput
from spillway.state.step.parked_input import ParkedInput
from spillway.state.step.tally import GroupTally, nonzero
from spillway.state.step.task import Task, TaskAttempt

GROUPS = 4
OPERATOR = JoinOperator(
    inputs=(WireInput("a", ("g",), ("s0",)), WireInput("b", ("g",), ("s0",))),
    outputs=(ColumnRef(0, 0),),
    residual=None,
    key_columns=((), ()),
    groups=GROUPS,
    result_schema=pa.schema([("g", pa.int64())]),
    lineage=(Lineage(8, GROUPS, ColumnRef(1, 0)),),
)


def task(directory: Path, *, suspended: int = 0, attempt: str = "x") -> Task:
    orders = Orders(7, 3, 0b1111, (), (), (), Limits(), str(directory), str(directory), {}, None, "zstd")
    return Task(replace(orders, suspended=suspended), OPERATOR, TaskAttempt("host", "executor", attempt))


def rows(groups: list[int], came_through: list[int]) -> SortedRows:
    hashes = group_starts(GROUPS)[np.array(groups, dtype=np.int64)]
    return SortedRows(hashes, pa.record_batch({"g": pa.array(came_through, pa.int64())}))


def test_rows_that_become_state_count_by_group_and_by_the_group_they_came_through(tmp_path: Path) -> None:
    tally = GroupTally(task(tmp_path))
    tally.add(0, rows([0, 0, 2], [1, 1, 1]))  # input 0 has no lineage
    tally.add(1, rows([1, 2], [3, 0]))
    assert nonzero(tally.rows) == {0: 2, 1: 1, 2: 2}
    assert nonzero(tally.bytes) == {0: 32, 1: 16, 2: 32}
    through = np.array([5, 0, 0, 0])
    assert tally.lineage({8: through}) == {8: (5, 1, 16), 11: (0, 1, 16)}


def test_rows_that_expire_are_those_that_counted_and_are_not_left(tmp_path: Path) -> None:
    tally = GroupTally(task(tmp_path))
    whole = rows([0, 1, 1, 3], [0, 0, 0, 0])
    tally.expire(SortedRows(whole.hashes, whole.columns, np.array([True, False, True, True])))
    assert nonzero(tally.expired_rows) == {0: 1, 3: 1}
    tally.expire(whole, whole.take(np.array([0, 1])))
    assert nonzero(tally.expired_rows) == {0: 1, 1: 1, 3: 2}
    assert nonzero(tally.expired_bytes) == {0: 16, 1: 16, 3: 32}


def test_attempts_of_one_step_have_different_file_names(tmp_path: Path) -> None:
    assert task(tmp_path).file_name("r") == "000000000007-0003-x-r"
    assert task(tmp_path, attempt="y").file_name("r") != task(tmp_path).file_name("r")


def test_rows_of_suspended_groups_are_parked_and_the_others_returned(tmp_path: Path) -> None:
    parked = ParkedInput(task(tmp_path, suspended=0b0110))
    assert parked.suspended is not None
    whole = rows([0, 1, 2, 3], [0, 0, 0, 0])
    kept = parked.suspended.without(1, whole.hashes, whole.columns, np.array([3, 1, 2]))
    assert kept.tolist() == [3]
    (entry,) = parked.close()
    assert (entry.input, entry.group_rows) == (1, {1: 1, 2: 1})
    assert ParkedInput(task(tmp_path)).close() == []
