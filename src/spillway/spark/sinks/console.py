"""A sink that prints the first rows of each epoch, like Spark's console sink.

Nothing is kept: the staged files are deleted once printed and recorded. Known limit: an epoch that was
printed just before a crash is printed again.
"""

import sys
from collections.abc import Collection
from typing import TextIO

import pyarrow as pa
from pyarrow import parquet

from spillway.manager import StagedEpoch
from spillway.spark.sinks.epoch_log import EpochLog
from spillway.spark.sinks.parquet import check_directory
from spillway.spark.sinks.schema import parquet_schema
from spillway.spark.sinks.staging import Staging
from spillway.state.storage import Storage

RULE = "-" * 43


class ConsoleSink:
    """Results as text on standard output."""

    __slots__ = ("_cell_characters", "_log", "_output", "_schema", "_shown_rows", "_staging", "_storage")

    def __init__(
        self,
        storage: Storage,
        *,
        shown_rows: int = 20,
        cell_characters: int | None = 20,
        output: TextIO | None = None,
    ) -> None:
        self._storage = storage
        self._staging = Staging(storage)
        self._log = EpochLog(storage)
        self._shown_rows = shown_rows
        self._cell_characters = cell_characters
        self._output = output
        self._schema: pa.Schema | None = None

    @property
    def staging(self) -> str:
        return self._staging.uri

    def belongs_to(self, query_id: str) -> bool:
        return self._log.belongs_to(query_id)

    def prepare(self, query_id: str, schema: pa.Schema) -> None:
        self._schema = parquet_schema(schema)
        check_directory(self._storage)
        self._log.claim(query_id, self._schema)
        self._staging.prepare()

    def last_committed(self, query_id: str) -> int:
        return self._log.progress(query_id).sequence

    def commit(self, epoch: StagedEpoch) -> None:
        if epoch.sequence > self.last_committed(epoch.query_id):
            if epoch.files:
                self._print(epoch, self._first_rows(self._staging.names(epoch)))
            self._log.record(epoch)
        self._staging.discard(epoch)

    def sweep(self, keep: Collection[str]) -> int:
        return self._staging.sweep(keep)

    def close(self) -> None:
        pass

    def _first_rows(self, names: list[str]) -> list[list[str]]:
        rows: list[list[str]] = []
        for name in names:
            missing = self._shown_rows - len(rows)
            if missing <= 0:
                break
            with self._storage.open_input(name) as source:
                batches = parquet.ParquetFile(source).iter_batches(batch_size=missing)
                first = next(batches, None)
                if first is not None:
                    cells = [[self._cell(value) for value in column.to_pylist()] for column in first.columns]
                    rows.extend(list(row) for row in zip(*cells, strict=True))
        return rows

    def _cell(self, value: object) -> str:
        text = "NULL" if value is None else str(value)
        limit = self._cell_characters
        if limit is None or len(text) <= limit:
            return text
        return text[:limit] if limit < 4 else text[: limit - 3] + "..."

    def _print(self, epoch: StagedEpoch, rows: list[list[str]]) -> None:
        header = list(self._schema.names) if self._schema is not None else []
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        border = "+" + "+".join("-" * width for width in widths) + "+"
        lines = [RULE, f"Epoch: {epoch.sequence}", RULE, border, _line(header, widths), border]
        lines += [_line(row, widths) for row in rows]
        lines.append(border)
        if epoch.rows > len(rows):
            lines.append(f"showing {len(rows)} of {epoch.rows} rows")
        print("\n".join(lines), file=self._output or sys.stdout, flush=True)


def _line(cells: list[str], widths: list[int]) -> str:
    return "|" + "|".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + "|"
