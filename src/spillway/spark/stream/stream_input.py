"""Input by Spark's Structured Streaming: micro-batches become batches, in Spark's own thread.

Spark keeps the offsets; a backlog whose batches can be read again is planned ahead (`run_ahead`).
"""

import time
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spillway.spark.stream.batch_rows import FrameBatch
from spillway.spark.stream.input import InputBatch, OnBatch
from spillway.spark.stream.run_ahead import RunAhead

Writer = Callable[[Callable[[DataFrame, int], None]], DataStreamWriter]
START_SECONDS = 0.01
"""How often is looked whether the stream has started."""


class StreamInput:
    def __init__(self, writer: Writer, *, runs_ahead: bool) -> None:
        """`writer` makes the stream's writer for a function that takes micro-batches."""
        self._writer = writer
        self._ahead = RunAhead() if runs_ahead else None
        self._is_stopping = self._is_cut = False
        self._stream: StreamingQuery | None = None

    @property
    def is_cut(self) -> bool:
        return self._is_cut

    @property
    def is_waiting(self) -> bool:
        return self._stream is not None and not self._stream.status["isTriggerActive"]

    @property
    def runs_ahead(self) -> bool:
        return self._ahead is not None

    def run(self, on_batch: OnBatch) -> None:
        def begin(frame: DataFrame, batch_id: int) -> None:
            work = partial(_work, on_batch, InputBatch(batch_id, FrameBatch(frame)))
            work() if self._ahead is None else self._ahead.begin(work)

        stream = self._stream = self._writer(begin).start()
        if self._is_stopping:
            self.stop()
        try:
            stream.awaitTermination()
        finally:
            if self._ahead is not None:
                self._ahead.close()

    def stop(self) -> None:
        """A stream that has come to its end by itself is left alone."""
        self._is_stopping = True
        if self._stream is not None and self._stream.isActive:
            self._is_cut = True
            self._stream.stop()

    def process_all_available(self, is_active: Callable[[], bool]) -> None:
        while self._stream is None and is_active():
            time.sleep(START_SECONDS)
        if self._stream is not None:
            self._stream.processAllAvailable()

    def explain(self, extended: bool) -> None:
        if self._stream is not None:
            self._stream.explain(extended)


def _work(on_batch: OnBatch, batch: InputBatch) -> None:
    on_batch(batch)
