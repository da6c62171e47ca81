"""Stops the Spark jobs of one run, those that run now and those that start before it has ended."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from spillway.errors import ComputeError

CANCELLED = "the computation was cancelled; nothing was written"
CANCEL_SECONDS, LOOK_SECONDS = 0.05, 1.0


class Cancellation:
    """Jobs are known by their tag."""

    def __init__(self, context: SparkContext, tag: str) -> None:
        self._context, self._tag = context, tag
        self._cancelled, self._ended = threading.Event(), threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        self._cancelled.set()

    def check(self) -> None:
        if self.is_cancelled:
            raise ComputeError(CANCELLED)

    @contextmanager
    def watched(self, look: Callable[[], None] | None = None) -> Iterator[None]:
        """While this lasts a thread cancels jobs if that is asked for; otherwise it calls `look` at times."""
        watcher = threading.Thread(target=self._watch, args=(look,), name=f"{self._tag}-watch", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self._ended.set()
            watcher.join()

    def _watch(self, look: Callable[[], None] | None) -> None:
        """Spark cancels the jobs of a tag that run now, not those that start next: tell it until the end."""
        looked = time.monotonic()
        while not self._ended.wait(CANCEL_SECONDS):
            if self._cancelled.is_set():
                self._context.cancelJobsWithTag(self._tag)
            elif look is not None and time.monotonic() > looked + LOOK_SECONDS:
                look()
                looked = time.monotonic()


def first_line(error: Exception) -> str:
    """What Spark says, without its plan and stack."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage()).strip()
    return text.splitlines()[0] if text else type(error).__name__
