"""Between the joins of a tree: rows on their way from one join to the next, as Arrow files.

A join that is not the root writes its results in the wire format of its parent, one file for each processor
that has some of the parent's groups they belong to. The files have names of their attempt, live as long as
their epoch, and are read back by mapping. So a row between two joins never becomes a row of the JVM; what
goes through Spark's shuffle is only who wrote which file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spillway.plan.expression import Columns, Expression
from spillway.state.rows import Int64Array, folded, group_of, hash_in_group
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN, Operator, Written, output_arrays
from spillway.state.storage import Storage

DIRECTORY = "exchange"


@dataclass(frozen=True, slots=True)
class ExchangeOutlet:
    """Where the results of a join go: to its parent's groups, which are placed on processors."""

    storage: Storage
    parent: Operator
    placement: tuple[int, ...]
    """The processor of each of the parent's groups."""
    sent: dict[int, str] = field(default_factory=dict)
    """Filled when the join is done: the file for each processor that gets rows."""

    def writer(self, operator: Operator, stem: str) -> "ExchangeWriter":
        return ExchangeWriter(operator, self, stem)


class ExchangeFile:
    """One file of rows for one join on one processor, opened with its first rows."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self.name = name
        self.rows = 0
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self._writer is None:
            self._file = self._storage.open_output(self.name)
            self._writer = pa.ipc.new_file(self._file, batch.schema)
        self.rows += batch.num_rows
        with self._storage.writing(self.name):
            self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            with self._storage.writing(self.name):
                self._writer.close()
                self._file.close()


def read_exchange(storage: Storage, names: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The rows of some files, one batch after the other."""
    for name in names:
        reader = pa.ipc.open_file(storage.open_input(name))
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


class ExchangeWriter:
    """Takes the results of a join, as a `ResultWriter` does, and makes them input of its parent."""

    def __init__(self, operator: Operator, outlet: ExchangeOutlet, stem: str) -> None:
        assert operator.edge is not None
        self._operator = operator
        self._edge = operator.edge
        self._outlet = outlet
        self._stem = stem
        self._targets = np.array(outlet.placement, dtype=np.int64)
        self._names = list(outlet.parent.inputs[self._edge.input].slots)
        self._writers: dict[int, ExchangeFile] = {}
        self.rows = 0
        self.group_results: Int64Array = np.zeros(operator.groups, dtype=np.int64)
        self.lineage_results: dict[int, Int64Array] = {}

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None:
        own = group_of(hashes, self._operator.groups)
        self.rows += len(hashes)
        self.group_results += np.bincount(own, minlength=self._operator.groups)
        arrays = output_arrays(self._operator, len(hashes), outputs, columns)
        parts = self._edge.hashes
        downstream = folded([part.to_numpy() for part in arrays[:parts]])
        if self._edge.keeps_group:
            downstream = hash_in_group(hashes, downstream)
        tags = pa.array(np.full(len(hashes), self._edge.input, dtype=np.int8))
        batch = pa.RecordBatch.from_arrays(
            [tags, pa.array(downstream), *arrays[parts:], pa.array(own.astype(np.uint16))],
            names=[TAG_COLUMN, HASH_WIRE_COLUMN, *self._names],
        )
        targets = self._targets[group_of(downstream, self._outlet.parent.groups)]
        first = int(targets[0])
        if bool((targets == first).all()):
            self._writer(first).write(batch)
            return
        for target in np.unique(targets):
            rows = np.flatnonzero(targets == target)
            self._writer(int(target)).write(batch.take(pa.array(rows)))

    def close(self) -> Written:
        """Finish the files; none of them is for the sink."""
        for target, writer in sorted(self._writers.items()):
            writer.close()
            self._outlet.sent[target] = writer.name
        return ()

    def _writer(self, target: int) -> ExchangeFile:
        if target not in self._writers:
            name = f"{DIRECTORY}/{self._stem}-{target:04d}.arrow"
            self._writers[target] = ExchangeFile(self._outlet.storage, name)
        return self._writers[target]
