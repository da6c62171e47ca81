"""Where the batches of a query come from: Structured Streaming (`stream_input`) or a file loop (`file_loop`).

Contract: batches come one at a time and in the order of their numbers. An input tells nobody that a batch is
done; the manifest does. After a restart the first batch is the one after the manifest's last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from spillway.manager.files import FileBatch
from spillway.spark.stream.batch_rows import BatchRows


@dataclass(frozen=True, slots=True)
class InputBatch:
    """One batch: its wire rows, and the files that they come from if these are known."""

    batch_id: int
    rows: BatchRows
    files: FileBatch | None = None


OnBatch = Callable[[InputBatch], int]
"""Runs the epochs of a batch; returns how many input rows they had."""


class QueryInput(Protocol):
    """The input of one query."""

    def run(self, on_batch: OnBatch) -> None:
        """Give out batches until the input is exhausted, or `stop` is called. Raises what went wrong."""
        ...

    def stop(self) -> None:
        """Let `run` return, without waiting for it. A batch that is being worked at is not interrupted."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether it was stopped before its end, so that input may be left."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for new input."""
        ...

    def process_all_available(self, is_active: Callable[[], bool]) -> None:
        """Wait until everything that is there now was given out and worked at, or the query is not active."""
        ...

    def explain(self, extended: bool) -> None:
        """Print Spark's plan of the last batch."""
        ...
