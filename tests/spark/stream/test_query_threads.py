"""Stopping and cleaning up from other threads, at the worst moments; the stream is a stand-in for Spark's."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from spillway.errors import SinkError, SpillwayError
from spillway.spark.stream.query import Query
from spillway.spark.stream.stream_input import StreamInput

HANG_SECONDS = 20
"""Long enough to call what has not ended by then a deadlock."""


class Stream:
    """Like Spark's: `stop` waits for the thread that calls back, which may be about to begin a batch."""

    def __init__(self, on_batch: Callable[[Any, int], None]) -> None:
        self._begin = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(on_batch,), daemon=True)
        self._ended = self.hangs = False

    def start(self) -> "Stream":
        self._thread.start()
        return self

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return self._thread.is_alive()

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        self._thread.join()

    def end(self) -> None:
        """The input is exhausted."""
        self._ended = True
        self._begin.set()

    def stop(self) -> None:
        self._begin.set()
        self._thread.join(HANG_SECONDS)
        self.hangs = self.isActive

    def _run(self, on_batch: Callable[[Any, int], None]) -> None:
        self._begin.wait()
        if self._ended:
            return
        try:
            on_batch(None, 0)
        except Exception:  # a stream that fails ends
            return


class IdleEngine:
    """Has nothing to do but one clean-up epoch, which waits until it is told to go on."""

    has_cursor = has_pending = has_backlog = has_waiting = has_expiring = has_room = False

    def __init__(self, *, has_cleanup: bool = False) -> None:
        self.has_cleanup = has_cleanup
        self.cleaning, self.go_on = threading.Event(), threading.Event()
        self.events: list[str] = []

    @property
    def manifest(self) -> Any:
        raise AssertionError("no epoch may begin")

    def is_committed(self, batch_id: int) -> bool:
        return batch_id < 0


class CleaningQuery(Query):
    def _clean(self, _: object) -> None:
        engine: Any = self._engine
        engine.cleaning.set()
        engine.go_on.wait(HANG_SECONDS)
        engine.events.append("cleaned")
        engine.has_cleanup = False


def started(
    engine: Any,
    streams: list[Stream],
    kind: type[CleaningQuery] = CleaningQuery,
    *,
    stream: type[Stream] = Stream,
    clean_at_end: bool = False,
) -> CleaningQuery:
    def writer(on_batch: Callable[[Any, int], None]) -> Any:
        streams.append(stream(on_batch))
        return streams[0]

    nothing: Any = None
    return kind(
        "query",
        engine,
        StreamInput(writer, runs_ahead=False),
        nothing,
        lambda: engine.events.append("closed"),
        budget_is_hard=True,
        clean_at_end=clean_at_end,
    )


def wait_for_stream(query: Query) -> None:
    given: Any = query._input
    while given._stream is None:
        time.sleep(0.001)


def test_stop_while_a_batch_begins_does_not_wait_for_itself() -> None:
    streams: list[Stream] = []
    query = started(IdleEngine(), streams)
    wait_for_stream(query)
    query.stop()
    assert not streams[0].hangs
    assert not query.isActive
    assert query.exception() is None


def test_nothing_is_closed_under_a_clean_up_and_none_begins_afterwards() -> None:
    streams: list[Stream] = []
    engine = IdleEngine(has_cleanup=True)
    query = started(engine, streams)
    wait_for_stream(query)
    asked = threading.Thread(target=query.cleanup)
    asked.start()
    assert engine.cleaning.wait(HANG_SECONDS)
    streams[0].end()
    query.awaitTermination(0.2)  # time enough to close too early
    engine.go_on.set()
    asked.join()
    query.stop()
    assert engine.events == ["cleaned", "closed"]
    engine.has_cleanup = True
    query.cleanup()
    assert engine.events == ["cleaned", "closed"]


class FailingQuery(CleaningQuery):
    """Ends with a clean-up that the sink refuses, after it was asked to stop."""

    def _clean(self, _: object) -> None:
        engine: Any = self._engine
        engine.cleaning.set()
        engine.go_on.wait(HANG_SECONDS)
        raise SinkError("the sink is full")


def test_an_error_of_ours_while_stopping_is_told() -> None:
    streams: list[Stream] = []
    engine = IdleEngine(has_cleanup=True)
    query = started(engine, streams, FailingQuery, clean_at_end=True)
    wait_for_stream(query)
    streams[0].end()
    assert engine.cleaning.wait(HANG_SECONDS)
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    while not query._stopping.is_set():
        time.sleep(0.001)
    engine.go_on.set()
    stopping.join()
    assert str(query.exception()) == "the sink is full"
    assert engine.events == ["closed"]


class FailingStream(Stream):
    """Is interrupted, as Spark's is when it is stopped inside a batch."""

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        super().awaitTermination()
        raise RuntimeError("interrupted")


def test_to_be_interrupted_by_stop_is_no_error() -> None:
    streams: list[Stream] = []
    query = started(IdleEngine(), streams, stream=FailingStream)
    wait_for_stream(query)
    query.stop()
    assert query.exception() is None


def test_a_stream_that_fails_by_itself_is_an_error() -> None:
    streams: list[Stream] = []
    query = started(IdleEngine(), streams, stream=FailingStream)
    wait_for_stream(query)
    streams[0].end()
    with pytest.raises(SpillwayError, match="interrupted"):
        query.awaitTermination(HANG_SECONDS)
