"""Writes the results of one attempt: chunks of combinations become row groups of one Parquet file.

The file is opened at the first result and lies under an attempt-specific name in the sink's staging area;
nobody sees it before its epoch is committed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.plan.evaluate import Columns, evaluate
from spillway.plan.expression import ColumnRef, Expression
from spillway.state.group import Int64Array, group_of
from spillway.state.lineage import LineageCounter
from spillway.state.operator import JoinOperator, Operator
from spillway.state.probe import Chunk, verify
from spillway.state.storage import Storage

Written = tuple[tuple[str, int, int], ...]
"""Result files: name, rows, bytes."""


class Writer(Protocol):
    """Takes the results of an attempt."""

    rows: int
    group_results: Int64Array
    lineage_results: dict[int, Int64Array]
    """Per join below, results per group that they came through."""

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None: ...

    def close(self) -> Written: ...


class ResultWriter:
    def __init__(
        self,
        operator: Operator,
        staging: str | None,
        name: str,
        compression: str,
        counters: Mapping[int, LineageCounter],
    ) -> None:
        self._operator = operator
        self._storage = None if staging is None else Storage(staging)
        self._name = name
        self._compression = compression
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0
        self.group_results: Int64Array = np.zeros(operator.groups, dtype=np.int64)
        self._lineage = operator.lineage if isinstance(operator, JoinOperator) else ()
        self.lineage_results: dict[int, Int64Array] = {
            join: np.zeros(operator.groups, dtype=np.int64) for join, _ in self._lineage
        }
        self._counters = counters

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None:
        """Write the outputs for some rows, whose columns `columns` gives; hashes count them by group."""
        self.rows += len(hashes)
        groups = group_of(hashes, self._operator.groups)
        self.group_results += np.bincount(groups, minlength=self._operator.groups)
        for join, ref in self._lineage:
            self.lineage_results[join] += self._counters[join].count(columns(ref).to_numpy())
        if self._storage is not None:
            schema = self._operator.result_schema
            arrays = output_arrays(len(hashes), outputs, schema, columns)
            self._parquet(self._storage).write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def close(self) -> Written:
        """Finish the file: its name, rows and bytes, or nothing when there were no results.

        Results that are only counted are reported as a file of no bytes, which no sink looks for.
        """
        if not self.rows:
            return ()
        if self._writer is None:
            return ((self._name, self.rows, 0),)
        self._writer.close()
        size = self._file.tell()
        self._file.close()
        return ((self._name, self.rows, size),)

    def _parquet(self, storage: Storage) -> pq.ParquetWriter:
        if self._writer is None:
            self._file = storage.open_output(self._name)
            self._writer = pq.ParquetWriter(
                self._file,
                self._operator.result_schema,
                compression=self._compression,
                use_dictionary=False,
                write_statistics=False,
            )
        return self._writer


def output_arrays(
    rows: int, outputs: Sequence[Expression], schema: pa.Schema, columns: Columns
) -> list[pa.Array]:
    """The values of the outputs for some rows, in the types of the schema."""
    arrays = []
    for value, field in zip(outputs, schema, strict=True):
        array = columns(value) if isinstance(value, ColumnRef) else evaluate(value, columns, rows)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return arrays


def write_chunk(writer: Writer, operator: JoinOperator, chunk: Chunk) -> None:
    """Write the results of a join that are really ones: keys equal, residual predicate true."""
    if chunk.combinations.collisions:
        chunk = verify(chunk, operator.key_columns)
    if operator.residual is not None and chunk.rows:
        chunk = chunk.filter(evaluate(operator.residual, _columns(chunk), chunk.rows))
    if chunk.rows:
        writer.write_rows(chunk.hashes(), operator.outputs, _columns(chunk))


def _columns(chunk: Chunk) -> Columns:
    return lambda ref: chunk.column(ref.input, ref.column)
