"""Clean-up: the results that no generation of a group alone could produce, each exactly once.

Groups are cleaned up in ranges of hashes: all rows of a range are read once and joined once, with their
generations as labels (`generations`), and combinations of a single generation, which are out already, are
dropped by these labels before any value is copied. Ranges are as large as memory allows. A hash with more
rows than fit is probed as it is mapped, by pieces of its driving rows.

All is enumerated in an order that depends on the rows only, so a cursor says where to go on, and a kill
repeats nothing.

Known limit: on storage that is not local whole runs are read, not slices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spillway.state.join.generations import RangeRows, missing
from spillway.state.join.hash_ranges import Slices, Span
from spillway.state.join.labels import UNSAID, Labels
from spillway.state.join.probe import NOTHING_COPIED, probe
from spillway.state.join.production import Production
from spillway.state.orders import CleanupBatch
from spillway.state.rows import Cursor, Run, SortedRows, map_run
from spillway.state.storage import Storage


@dataclass(slots=True)
class CleanupStep:
    """One processor's part of a clean-up epoch: bounded by results, and by what they take."""

    storage: Storage
    production: Production
    runs: Sequence[Run]
    """Those that hold rows of the groups."""
    read_rows: int = 0
    read_bytes: int = 0
    _mapped: dict[str, SortedRows] = field(default_factory=dict)

    def run(self, batches: Sequence[CleanupBatch]) -> tuple[list[Cursor], list[Cursor]]:
        """Go on with the batches in order; returns where begun ones stopped, and those that are finished."""
        cursors = []
        finished = []
        for batch in batches:
            if self.production.exhausted:
                if batch.cursor.has_begun:
                    cursors.append(batch.cursor)
                continue
            stopped = self._batch(batch)
            if stopped is None:
                finished.append(batch.cursor)
            else:
                cursors.append(stopped)
        return cursors, finished

    def _batch(self, batch: CleanupBatch) -> Cursor | None:
        runs = [run for run in self.runs if (run.live | run.spilled) & batch.cursor.groups]
        mapped = [(run, self._map(run)) for run in runs]
        operator, production = self.production.operator, self.production
        inputs, most_bytes = len(operator.inputs), production.limits.range_bytes
        span = Span(batch, mapped, inputs, operator.groups, most_bytes)
        cursor = batch.cursor
        while (range_ := span.after(cursor.hash)) is not None:
            if production.exhausted:
                return cursor
            slices = [rows.slices(range_) for rows in span.inputs]
            self._count(span, slices)
            stopped = self._range(slices, cursor) if range_.fits else self._hash(slices, range_.low, cursor)
            if stopped is not None:
                return stopped
            cursor = cursor.at(range_.high)
        return None

    def _range(self, slices: Sequence[Slices], cursor: Cursor) -> Cursor | None:
        """Produce what the rows of a range miss, from the cursor on; returns where it stopped."""
        operator, production = self.production.operator, self.production
        inputs = [RangeRows.of(of_input) for of_input in slices]
        rows = sum(len(of_input.hashes) for of_input in inputs)
        found = missing(inputs, operator.key_columns, production.sample)
        del inputs
        if found is None:
            production.work_left -= rows
            return None
        # A hash that misses nothing is left out here, but a step with less memory may have stopped inside it.
        has_begun = int(found.driver.hashes[0]) == cursor.hash
        reached = production.write(found, found.number(cursor.row, cursor.emitted) if has_begun else 0)
        production.work_left -= rows  # after a stop inside the range, or there might be no progress
        if reached >= found.total:
            return None
        row, emitted = found.position(reached)
        hash_ = int(found.driver.hashes[row])
        return cursor.at(hash_, row - int(np.searchsorted(found.driver.hashes, hash_)), emitted)

    def _hash(self, slices: Sequence[Slices], hash_: int, cursor: Cursor) -> Cursor | None:
        """The same for a hash with more rows than fit: nothing is copied but the results of a chunk."""
        segments = [of_input.rows for of_input in slices]
        labels = [Labels.of_segments(of_input.labels, of_input.rows) for of_input in slices]
        said = np.concatenate([of_input.labels for of_input in slices])
        if said.min() == said.max() != UNSAID:
            return None
        row, emitted = (cursor.row, cursor.emitted) if cursor.hash == hash_ else (0, 0)
        passed = 0
        for segment, label in zip(slices[0].rows, slices[0].labels, strict=True):
            while row < passed + segment.rows:
                if self.production.exhausted:
                    return cursor.at(hash_, row)
                block = segment.slice(row - passed, segment.rows)
                block = block.slice(0, min(block.rows, self.production.limits.block_rows))
                done, emitted = self._block(block, segments, (Labels.constant(label), *labels[1:]), emitted)
                row += done
                if done < block.rows:
                    return cursor.at(hash_, row, emitted)
            passed += segment.rows
        return None

    def _block(
        self,
        block: SortedRows,
        segments: Sequence[Sequence[SortedRows]],
        labels: tuple[Labels, ...],
        emitted: int,
    ) -> tuple[int, int]:
        operator = self.production.operator
        found = probe(block, 0, segments, operator.groups, operator.key_columns, NOTHING_COPIED)
        done = found.position(self.production.write(replace(found, labels=labels), emitted))
        self.production.work_left -= block.rows
        return done

    def _map(self, run: Run) -> SortedRows:
        if run.name not in self._mapped:
            self._mapped[run.name] = map_run(self.storage, run)
        return self._mapped[run.name]

    def _count(self, span: Span, slices: Sequence[Slices]) -> None:
        for runs, of_input in zip(span.inputs, slices, strict=True):
            rows = sum(segment.rows for segment in of_input.rows)
            self.read_rows += rows
            if rows:
                self.read_bytes += int(rows * runs.row_bytes.mean())
