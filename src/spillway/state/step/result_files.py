"""Result rows as Parquet files: those of one attempt for one result, chunk by chunk.

A file is opened at the first result and lies under an attempt-specific name in the sink's staging area;
nobody sees it before its epoch is committed. Usually there is one. Parquet keeps what it notes of each row
group in memory until the file ends, so under a small budget another file is begun after some row groups. And
it builds whole pages in memory, so under a small budget these are small.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.errors import SinkError, StateError, file_reason
from spillway.state.orders import NO_BOUND, Files
from spillway.state.storage import Storage

MOST_PAGE_BYTES, LEAST_PAGE_BYTES = 1 << 20, 8 << 10
MOST_PAGE_ROWS = 1024
PAGES = 16
"""Of a chunk of results. Up to ten times the bytes of a page are in memory while it is built."""
COLUMN_CHUNK_BYTES = 1800
"""What a column of a row group takes in memory when its file is closed, as measured."""
LEAST_ROW_GROUPS = 8


class ResultFiles:
    def __init__(
        self,
        schema: pa.Schema,
        staging: str | None,
        name: str,
        compression: str,
        chunk_bytes: int = NO_BOUND,
        sample: Callable[[], None] = lambda: None,
    ) -> None:
        """`chunk_bytes` is what one call of `write` writes at most; Parquet's buffers follow from it."""
        self._schema = schema
        self._storage = None if staging is None else Storage(staging)
        self._name = name
        self._compression = compression
        self._page_bytes = max(LEAST_PAGE_BYTES, min(chunk_bytes // PAGES, MOST_PAGE_BYTES))
        groups = chunk_bytes // 2 // (max(1, len(schema)) * COLUMN_CHUNK_BYTES)
        self._row_groups = max(LEAST_ROW_GROUPS, groups)
        self._sample = sample
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._begun_rows = 0
        self._begun_groups = 0
        self._written: list[tuple[str, int, int]] = []
        self._rows = 0

    @property
    def only_counts(self) -> bool:
        """Whether no file is written, so that no values are needed."""
        return self._storage is None

    def write(self, rows: int, arrays: Sequence[pa.Array]) -> None:
        self._rows += rows
        if self._storage is None:
            return
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        with self._naming(self._storage):
            self._parquet(self._storage, batch).write_batch(batch)
        self._sample()
        self._begun_rows += batch.num_rows
        self._begun_groups += 1
        if self._begun_groups >= self._row_groups:
            self._finish()

    def close(self) -> Files:
        """Finish the last file: names, rows and bytes of all, or nothing when there were no results.

        Results that are only counted are reported as a file of no bytes, which no sink looks for.
        """
        if not self._rows:
            return ()
        if self._storage is None:
            return ((self._name, self._rows, 0),)
        self._finish()
        return tuple(self._written)

    def _finish(self) -> None:
        if self._writer is None or self._storage is None:
            return
        with self._naming(self._storage):
            self._writer.close()
            size = self._file.tell()
            self._file.close()
        self._written.append((self._file_name, self._begun_rows, size))
        self._writer, self._begun_rows, self._begun_groups = None, 0, 0

    @contextmanager
    def _naming(self, storage: Storage) -> Iterator[None]:
        """Whatever goes wrong with the file, a full disk above all, names it as one of the sink."""
        try:
            yield
        except (OSError, pa.ArrowException, StateError) as error:
            cause = error.__cause__ or error if isinstance(error, StateError) else error
            reason = file_reason(cause, "correct that, then run the command again")
            where = storage.uri(self._file_name)
            raise SinkError(f"cannot write results of the sink to {where}: {reason}") from error

    @property
    def _file_name(self) -> str:
        return f"{self._name}-{len(self._written)}" if self._written else self._name

    def _parquet(self, storage: Storage, batch: pa.RecordBatch) -> pq.ParquetWriter:
        if self._writer is None:
            self._file = storage.open_output(self._file_name)
            widest = max((column.nbytes for column in batch.columns), default=1) // batch.num_rows
            self._writer = pq.ParquetWriter(
                self._file,
                self._schema,
                compression=self._compression,
                use_dictionary=False,
                write_statistics=False,
                data_page_size=self._page_bytes,
                write_batch_size=max(1, min(MOST_PAGE_ROWS, self._page_bytes // max(1, widest))),
            )
        return self._writer
