"""Produces the results that driving rows give, at run time and in clean-up, up to the cap of an epoch.

Driving rows are matched in blocks and results are expanded in chunks. Both are as large as memory allows:
fewer rows at a time where rows are wide, have many matches, or meet many segments. Which rows are taken
together changes nothing about the results and their order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from spillway.plan.expression import ColumnRef, evaluate, references
from spillway.state.join.matches import Gathering
from spillway.state.join.operator import JoinOperator
from spillway.state.join.probe import Combinations, chunk, probe, verify
from spillway.state.orders import NO_BOUND, Limits
from spillway.state.rows import SortedRows
from spillway.state.step import Writer, column_labels

LEAST_ROWS = 16
"""Blocks and chunks are not cut below this many rows: their fixed costs would be all that there is."""
NEEDLE_BYTES = 120
"""What a driving row takes while it is matched, besides what it takes per segment."""
NEEDLE_SEGMENT_BYTES = 32
INDEX_BYTES = 32
"""What a result takes per input until its values are taken."""


@dataclass(slots=True)
class Production:
    operator: JoinOperator
    writer: Writer
    limits: Limits
    sample: Callable[[], None]
    """Called at moments of much memory."""
    results_left: int = field(init=False)
    work_left: int = field(init=False)
    _used: tuple[ColumnRef, ...] = field(init=False)
    """The columns that results are made of."""
    _block_rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.results_left = self.limits.results
        self.work_left = self.limits.work
        self._block_rows = self.limits.block_rows
        residual = self.operator.residual
        expressions = self.operator.outputs if residual is None else (*self.operator.outputs, residual)
        self._used = tuple({ref for expression in expressions for ref in references(expression)})

    def produce(
        self, driver: int, rows: SortedRows, others: Sequence[Sequence[SortedRows]], emitted: int
    ) -> tuple[int, int]:
        """Write what the rows of one input give with the rows of the others.

        `emitted` results of its first row are out already. Returns the rows done, and the results that are
        out of the next.
        """
        gathering = self._gathering(others)
        most = self._most_rows(others)
        start = 0
        while start < rows.rows:
            block = rows.slice(start, min(rows.rows, start + min(most, self._block_rows)))
            found = probe(block, driver, others, self.operator.groups, self.operator.key_columns, gathering)
            self.sample()
            if not found.is_copied and block.rows > LEAST_ROWS:
                self._block_rows = max(LEAST_ROWS, block.rows // 4)
                continue
            done, emitted = found.position(self.write(found, emitted))
            if done < block.rows:
                return start + done, emitted
            start += done
            self._block_rows = min(self.limits.block_rows, self._block_rows + self._block_rows // 4 + 1)
        return rows.rows, 0

    @property
    def exhausted(self) -> bool:
        """Whether the epoch has done its share."""
        return self.results_left <= 0 or self.work_left <= 0

    def write(self, found: Combinations, start: int) -> int:
        """Write what the combinations from number `start` on give; returns the number that was reached."""
        step = self._chunk_rows(found) if found.total > start else 1
        while start < found.total and not self.exhausted:
            stop = min(found.total, start + min(step, self.results_left, self.work_left))
            self._write_chunk(found, start, stop)
            self.sample()
            self.work_left -= stop - start
            start = stop
        return start

    def _write_chunk(self, found: Combinations, low: int, high: int) -> None:
        """Write those of the combinations that are results: keys equal, residual predicate true."""
        operator, results = self.operator, chunk(found, low, high)
        if found.labels is not None:
            results = results.unsaid(found.labels)
        if found.collisions and results.rows:
            results = verify(results, operator.key_columns)
        if operator.residual is not None and results.rows:
            labels = column_labels(operator)
            results = results.filter(evaluate(operator.residual, results.values, results.rows, labels))
        if results.rows:
            self.results_left -= results.rows
            self.writer.write_rows(results.hashes(), operator.outputs, results.values)

    def _gathering(self, others: Sequence[Sequence[SortedRows]]) -> Gathering:
        limits = self.limits
        if limits.gather_bytes >= NO_BOUND:
            return Gathering(limits.gather_rows)
        row_bytes = tuple(np.array([segment.row_bytes for segment in of_input]) for of_input in others)
        return Gathering(limits.gather_rows, limits.gather_bytes // max(1, len(others) - 1), row_bytes)

    def _most_rows(self, others: Sequence[Sequence[SortedRows]]) -> int:
        segments = sum(len(of_input) for of_input in others)
        row_bytes = NEEDLE_BYTES + NEEDLE_SEGMENT_BYTES * segments
        free = self.limits.gather_bytes + self.limits.chunk_bytes  # neither is there yet
        return max(LEAST_ROWS, free // row_bytes)

    def _chunk_rows(self, found: Combinations) -> int:
        values = sum(found.value_bytes(ref.input, ref.column) for ref in self._used)
        row_bytes = values + INDEX_BYTES * len(found.matched)
        return min(self.limits.chunk_rows, max(LEAST_ROWS, int(self.limits.chunk_bytes / row_bytes)))
