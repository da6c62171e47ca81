"""Clean-up in steps with tiny limits: all missing combinations, each once, wherever a step stops."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
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
from spillway.state.join.cleanup import CleanupStep, _driving, part_bounds, terms
from spillway.state.join.operator import JoinOperator
from spillway.state.join.production import Production
from spillway.state.orders.orders import CleanupBatch, Limits
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.group import flags, group_of, group_starts
from spillway.state.rows.run import Position, Run, write_run
from spillway.state.rows.sorted_rows import SortedRows, sort_rows
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage

GROUPS = 2
SPREAD = np.uint64(0x9E3779B97F4A7C15)
GENERATIONS = 3


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
        st.integers(0, inputs - 1), st.integers(0, GENERATIONS - 1), st.lists(st.integers(0, 4), max_size=5)
    )
    return {
        "inputs": inputs,
        "runs": draw(st.lists(run, max_size=8)),
        "groups": draw(st.sampled_from([0b01, 0b10, 0b11])),
        "parts": draw(st.integers(1, 3)),
        "piece_bytes": draw(st.sampled_from([1, 40, 1 << 20])),
        "limits": Limits(
            rows=draw(st.integers(1, 6)),
            results=draw(st.integers(1, 6)),
            chunk_rows=draw(st.integers(1, 4)),
            block_rows=draw(st.integers(1, 4)),
            gather_rows=draw(st.sampled_from([0, 100])),
            round_bytes=draw(st.sampled_from([1, 1 << 20])),
        ),
    }


@given(cases())
def test_all_that_is_missing_comes_once_wherever_a_step_stops(
    quick_directory: Callable[[], Path], case: dict[str, Any]
) -> None:
    storage, join = Storage(str(quick_directory())), operator(case["inputs"])
    slices, rows = [], []
    for number, (input_, generation, keys) in enumerate(case["runs"]):
        made = segment(keys, 100 * number)
        size, checksum = write_run(storage, f"runs/{number}", made, None)
        run = Run(f"runs/{number}", input_, Position(number), number, made.rows, size, checksum, 0, 0b11)
        slices.append((run, ((generation, case["groups"]),)))
        groups = group_of(made.hashes, GROUPS)
        for row, (hash_, group) in enumerate(zip(made.hashes.tolist(), groups.tolist(), strict=True)):
            if case["groups"] >> group & 1:
                rows.append((input_, generation, hash_, made.columns.column(0)[row].as_py()))
    parts = 1 if case["groups"] == 0b11 else case["parts"]
    batch = CleanupBatch(
        Cursor(case["groups"], False, parts, case["piece_bytes"]), tuple(slices), GENERATIONS
    )

    found: list[tuple[int, ...]] = []
    driven = 0
    for _ in range(10_000):
        results = Results()
        step = CleanupStep(storage, Production(join, results, case["limits"], lambda: None))
        stopped, finished = step.run([batch])
        assert len(results.found) <= case["limits"].results and step.driven_rows <= case["limits"].rows
        assert step.rows_left == case["limits"].rows - step.driven_rows
        driven += step.driven_rows
        found += results.found
        if finished:
            assert (stopped, finished) == ([], [batch.cursor])
            break
        (cursor,) = stopped
        assert cursor != batch.cursor, "no step without progress"
        batch = CleanupBatch(from_text(Cursor, to_text(cursor)), batch.slices, batch.generations)

    by_input = [[row for row in rows if row[0] == number] for number in range(case["inputs"])]
    wanted = Counter(
        tuple(row[3] for row in chosen)
        for chosen in product(*by_input)
        if len({row[2] for row in chosen}) == 1 and len({row[1] for row in chosen}) > 1
    )
    assert Counter(found) == wanted


def test_batches_that_an_exhausted_step_does_not_reach_are_told_apart(tmp_path: Path) -> None:
    """One that was begun must be reported; one that was not is simply ordered again."""
    storage, join = Storage(str(tmp_path)), operator(2)
    production = Production(join, Results(), Limits(rows=0), lambda: None)
    begun, untouched = Cursor(0b1, False, 1, row=3), Cursor(0b10, False, 1)
    batches = [CleanupBatch(cursor, (), 1) for cursor in (begun, untouched)]
    assert CleanupStep(storage, production).run(batches) == ([begun], [])
    spent = Production(join, Results(), Limits(results=0), lambda: None)
    assert CleanupStep(storage, spent).run(batches) == ([begun], [])
    fresh = Production(join, Results(), Limits(rows=1, results=1), lambda: None)
    assert CleanupStep(storage, fresh).run(batches) == ([], [begun, untouched])


def test_rows_are_merged_only_as_far_as_memory_allows(tmp_path: Path) -> None:
    """Two runs of an input and generation are probed as one, up to 1.8 rounds."""
    storage = Storage(str(tmp_path))
    made = [segment([0] * 10, 100 * number) for number in range(3)]
    slices = []
    for number, (rows, generation) in enumerate(zip(made, (0, 0, 1), strict=True)):
        size, checksum = write_run(storage, f"runs/{number}", rows, None)
        run = Run(f"runs/{number}", number // 2, Position(number), number, 10, size, checksum, 0, 0b11)
        slices.append((run, ((generation, 0b11),)))
    batch = CleanupBatch(Cursor(0b11, False, 1), tuple(slices), 2)
    total = sum(rows.nbytes for rows in made)
    for round_bytes, merged in ((total * 5 // 9 + 1, 1), (total * 5 // 9 - 1, 2)):
        samples: list[int] = []
        limits = Limits(round_bytes=round_bytes)
        production = Production(operator(2), Results(), limits, partial(samples.append, 1))
        step = CleanupStep(storage, production)
        found = step._merged(step._segments(batch, 0))
        assert [[len(of) for of in of_input] for of_input in found] == [[merged, 0], [0, 1]]
        assert bool(samples) == (merged == 1)


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=4),
    st.integers(1, 400),
    st.integers(0, 30),
)
def test_driving_rows_come_in_small_pieces_that_do_not_depend_on_where_one_goes_on(
    runs: list[list[int]], piece_bytes: int, after: int
) -> None:
    segments = [segment(keys, 100 * number) for number, keys in enumerate(runs)]
    segments = [SortedRows(segment.hashes, segment.columns, flags(0b01, GROUPS)) for segment in segments]
    everything = list(_driving(segments, GROUPS, 0, piece_bytes))
    live = [
        row
        for segment in segments
        for row, group in zip(
            segment.columns.column(0).to_pylist(), group_of(segment.hashes, GROUPS), strict=True
        )
        if group == 0
    ]
    assert Counter(row for _, piece in everything for row in piece.columns.column(0).to_pylist()) == Counter(
        live
    )
    numbers = np.cumsum([0, *(piece.rows for _, piece in everything)])
    assert [number for number, _ in everything] == numbers[:-1].tolist()
    for _, piece in everything:
        assert piece.rows == 1 or piece.nbytes <= piece_bytes
        assert (np.diff(piece.hashes) >= 0).all()
        assert piece.rows
    again = list(_driving(segments, GROUPS, after, piece_bytes))
    kept = [(number, piece) for number, piece in everything if number + piece.rows > after]
    assert [(number, piece.columns.to_pydict()) for number, piece in again] == [
        (number, piece.columns.to_pydict()) for number, piece in kept
    ]


def test_pieces_are_as_large_as_they_may_be() -> None:
    rows = segment([0] * 10, 0)
    row_bytes = rows.nbytes // 10
    for fit, sizes in ((1, [1] * 10), (3, [3, 3, 3, 1]), (5, [5, 5]), (10, [10]), (99, [10])):
        pieces = _driving([rows], GROUPS, 0, row_bytes * fit)
        assert [piece.rows for _, piece in pieces] == sizes
    two = [segment([0] * 2, 0), segment([0] * 2, 10), segment([0], 20)]
    assert [piece.rows for _, piece in _driving(two, GROUPS, 0, row_bytes * 4)] == [4, 1]
    assert [piece.rows for _, piece in _driving(two, GROUPS, 0, row_bytes * 5)] == [5]
    pairs = [segment([0] * 2, 10 * number) for number in range(4)]
    assert [piece.rows for _, piece in _driving(pairs, GROUPS, 0, row_bytes * 4)] == [4, 4]
    single = [segment([0], number) for number in range(3)]
    assert [piece.rows for _, piece in _driving(single, GROUPS, 0, row_bytes * 2)] == [2, 1]


@pytest.mark.parametrize("groups", [1, 2, 3, 7])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_the_parts_of_a_group_are_its_hash_range_without_gap_or_overlap(groups: int, parts: int) -> None:
    starts = [int(start) for start in group_starts(groups)]
    for group in range(groups):
        bounds = [part_bounds(group, groups, part, parts) for part in range(parts)]
        assert bounds[0][0] == starts[group]
        assert bounds[-1][1] == (starts[group + 1] if group + 1 < groups else None)
        assert [high for _, high in bounds[:-1]] == [low for low, _ in bounds[1:]]
        widths = [(1 << 63 if high is None else high) - low for low, high in bounds]
        assert max(widths) - min(widths) <= 1


def test_terms_are_disjoint_and_complete() -> None:
    for inputs in range(2, 6):
        covered: Counter[tuple[bool, ...]] = Counter()
        for term in terms(inputs):
            assert term.others[term.driver] == "delta"
            choices = [
                {"base": [False], "delta": [True], "both": [False, True]}[kind] for kind in term.others
            ]
            covered.update(product(*choices))
        assert covered == Counter(
            choice for choice in product([False, True], repeat=inputs) if 0 < sum(choice) < inputs
        )
