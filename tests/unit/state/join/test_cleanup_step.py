"""Clean-up in steps with tiny limits: all missing combinations, each once, wherever a step stops."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.model import from_text, to_text
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.join.cleanup import CleanupStep
from spillway.state.join.operator import JoinOperator
from spillway.state.join.production import Production
from spillway.state.orders.orders import CleanupBatch, Limits
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.group import group_of
from spillway.state.rows.run import Position, Run, map_run, write_run
from spillway.state.rows.sorted_rows import SortedRows, sort_rows
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage

GROUPS = 2
SPREAD = np.uint64(0x9E3779B97F4A7C15)
GENERATIONS = 3
UNSAID = -1
ENDED = tuple(range(9, 9 * GENERATIONS, 10))
"""Generation g has the epochs from 10 g to 10 g + 9."""


class Results:
    """A writer that keeps the rows of all results."""

    def __init__(self) -> None:
        self.found: list[tuple[int, ...]] = []

    def write_rows(self, hashes: Any, outputs: Sequence[Any], columns: Callable[[Any], pa.Array]) -> None:
        self.found += list(zip(*(columns(output).to_pylist() for output in outputs), strict=True))


def operator(inputs: int) -> JoinOperator:
    return JoinOperator(
        inputs=tuple(WireInput(f"i{number}", ("id",), ("s0",)) for number in range(inputs)),
        outputs=tuple(ColumnRef(number, 0) for number in range(inputs)),
        residual=None,
        key_columns=((),) * inputs,
        groups=GROUPS,
        result_schema=pa.schema([(f"i{number}", pa.int64()) for number in range(inputs)]),
    )


def segment(keys: Sequence[int], first: int) -> SortedRows:
    hashes = (np.array(keys, dtype=np.uint64) * SPREAD).view(np.int64)
    return sort_rows(hashes, pa.record_batch({"id": np.arange(first, first + len(keys))}))


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    inputs = draw(st.integers(2, 3))
    run = st.tuples(
        st.integers(0, inputs - 1),
        st.integers(UNSAID, GENERATIONS - 1),
        st.lists(st.integers(0, 4), max_size=5),
        st.sampled_from([0b01, 0b10, 0b11, 0b11]),
    )
    return {
        "inputs": inputs,
        "runs": draw(st.lists(run, max_size=8)),
        "groups": draw(st.sampled_from([0b01, 0b10, 0b11])),
        "limits": draw(st.lists(limits(), min_size=1, max_size=3)),
    }


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    return Limits(
        work=draw(st.integers(1, 30)),
        results=draw(st.integers(1, 6)),
        chunk_rows=draw(st.integers(1, 4)),
        block_rows=draw(st.integers(1, 4)),
        range_bytes=draw(st.sampled_from([1, 400, 1000, 1 << 20])),
    )


def written(
    storage: Storage, number: int, input_: int, generation: int, keys: Sequence[int], groups: int
) -> tuple[Run, SortedRows]:
    """A run with rows of a generation, or unsaid ones, that count in these groups."""
    made = segment(keys, 100 * number)
    size, checksum = write_run(storage, f"runs/{number}", made, None)
    unsaid = groups if generation == UNSAID else 0
    epoch = 10 * max(0, generation) + number % 10
    name, at = f"runs/{number}", Position(number)
    return Run(name, input_, at, epoch, made.rows, size, checksum, 0, groups, unsaid=unsaid), made


@given(cases())
def test_all_that_is_missing_comes_once_wherever_a_step_stops(
    quick_directory: Callable[[], Path], case: dict[str, Any]
) -> None:
    storage, join = Storage(str(quick_directory())), operator(case["inputs"])
    runs, rows = [], []
    for number, (input_, generation, keys, there) in enumerate(case["runs"]):
        run, made = written(storage, number, input_, generation, keys, there)
        runs.append(run)
        groups = group_of(made.hashes, GROUPS)
        for row, (hash_, group) in enumerate(zip(made.hashes.tolist(), groups.tolist(), strict=True)):
            if case["groups"] & there & 1 << group:
                rows.append((input_, generation, hash_, made.columns.column(0)[row].as_py()))
    batch = CleanupBatch(Cursor(case["groups"], False), (ENDED,) * case["groups"].bit_count())

    found: list[tuple[int, ...]] = []
    for number in range(10_000):
        results = Results()
        # Whatever memory a step has, it goes on where another one stopped.
        allowed = case["limits"][number % len(case["limits"])]
        step = CleanupStep(storage, Production(join, results, allowed, lambda: None), runs)
        stopped, finished = step.run([batch])
        assert len(results.found) <= allowed.results
        found += results.found
        if finished:
            assert (stopped, finished) == ([], [batch.cursor])
            break
        (cursor,) = stopped
        assert cursor != batch.cursor, "no step without progress"
        batch = CleanupBatch(from_text(Cursor, to_text(cursor)), batch.ended)

    by_input = [[row for row in rows if row[0] == number] for number in range(case["inputs"])]
    wanted = Counter(
        tuple(row[3] for row in chosen)
        for chosen in product(*by_input)
        if len({row[2] for row in chosen}) == 1
        and (len({row[1] for row in chosen}) > 1 or chosen[0][1] == UNSAID)
    )
    assert Counter(found) == wanted


def test_batches_that_an_exhausted_step_does_not_reach_are_told_apart(tmp_path: Path) -> None:
    """One that was begun must be reported; one that was not is simply ordered again."""
    storage, join = Storage(str(tmp_path)), operator(2)
    begun, untouched = Cursor(0b1, False, row=3), Cursor(0b10, False)
    batches = [CleanupBatch(cursor, ((0,),)) for cursor in (begun, untouched)]
    for spent in (Limits(work=0), Limits(results=0)):
        step = CleanupStep(storage, Production(join, Results(), spent, lambda: None), ())
        assert step.run(batches) == ([begun], [])
    fresh = Production(join, Results(), Limits(work=1, results=1), lambda: None)
    assert CleanupStep(storage, fresh, ()).run(batches) == ([], [begun, untouched])


def test_every_row_is_read_once(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    made = [written(storage, n, n % 2, n % GENERATIONS, range(20), 0b11) for n in range(6)]
    batch = CleanupBatch(Cursor(0b11, False), (ENDED, ENDED))
    for range_bytes in (1, 1000, 1 << 20):
        limits = Limits(range_bytes=range_bytes)
        production = Production(operator(2), Results(), limits, lambda: None)
        step = CleanupStep(storage, production, [run for run, _ in made])
        assert step.run([batch]) == ([], [batch.cursor])
        assert step.read_rows == sum(rows.rows for _, rows in made)
        assert step.read_bytes == sum(rows.nbytes for _, rows in made)
        assert production.limits.work - production.work_left >= step.read_rows


@pytest.mark.parametrize("other", [[7], [5, 7]])
def test_a_stop_inside_a_hash_that_misses_nothing_hides_no_other(tmp_path: Path, other: list[int]) -> None:
    """A step with little memory stops there; one with more leaves that hash out."""
    storage = Storage(str(tmp_path))
    low, high = sorted((5, 7), key=lambda key: segment([key], 0).hashes[0])
    runs = [written(storage, 0, 0, 0, [low, low, high, high], 0b11)[0]]
    runs.append(written(storage, 1, 1, 0, [low] if len(other) > 1 else [], 0b11)[0])
    runs.append(written(storage, 2, 1, 1, [high], 0b11)[0])
    batch = CleanupBatch(Cursor(0b11, False), (ENDED, ENDED))
    found: list[tuple[int, ...]] = []
    small = Limits(work=1, block_rows=1, range_bytes=1)
    for limits in (small, *(Limits() for _ in range(3))):
        results = Results()
        step = CleanupStep(storage, Production(operator(2), results, limits, lambda: None), runs)
        stopped, _ = step.run([batch])
        found += results.found
        if not stopped:
            break
        batch = CleanupBatch(stopped[0], batch.ended)
    ids = runs_ids(storage, runs, high)
    assert Counter(found) == Counter(product(ids[0], ids[1]))


def runs_ids(storage: Storage, runs: Sequence[Run], key: int) -> list[list[int]]:
    """Per input, the ids of the rows of a key."""
    (hash_,) = segment([key], 0).hashes.tolist()
    ids: list[list[int]] = [[], []]
    for run in runs:
        rows = map_run(storage, run)
        for own, value in zip(rows.hashes.tolist(), rows.columns.column(0).to_pylist(), strict=True):
            if own == hash_:
                ids[run.input].append(value)
    return ids


@pytest.mark.parametrize("range_bytes", [1, 1 << 30])
def test_the_first_and_the_last_hash_are_hashes_like_others(tmp_path: Path, range_bytes: int) -> None:
    storage = Storage(str(tmp_path))
    hashes = np.array([-(1 << 63), -1, 0, (1 << 63) - 1])
    runs = []
    for input_ in (0, 1):
        rows = SortedRows(hashes, pa.record_batch({"id": np.arange(4) + 10 * input_}))
        size, checksum = write_run(storage, f"runs/{input_}", rows, None)
        runs.append(Run(f"runs/{input_}", input_, Position(input_), 10 * input_, 4, size, checksum, 0, 0b11))
    results = Results()
    limits = Limits(range_bytes=range_bytes)
    step = CleanupStep(storage, Production(operator(2), results, limits, lambda: None), runs)
    step.run([CleanupBatch(Cursor(0b11, False), (ENDED, ENDED))])
    assert sorted(results.found) == [(0, 10), (1, 11), (2, 12), (3, 13)]
