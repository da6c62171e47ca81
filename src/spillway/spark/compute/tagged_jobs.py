"""The Spark jobs of one run, known by a tag: watched, cancelled, and their failures reported in one line.

Spark cancels the jobs of a tag that run now, not those that start next. So a thread repeats the call until
the run has ended.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from spillway.errors import ComputeError
from spillway.spark.jvm import as_spillway_error

CANCELLED = "the computation was cancelled; nothing was written"
CANCEL_SECONDS, LOOK_SECONDS = 0.05, 1.0


class TaggedJobs:
    def __init__(self, context: SparkContext) -> None:
        self.tag = f"spillway_{uuid.uuid4().hex[:12]}"
        self._context = context
        self._cancelled, self._ended = threading.Event(), threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def check(self) -> None:
        """Raise if the run was cancelled."""
        if self._cancelled.is_set():
            raise ComputeError(CANCELLED)

    @contextmanager
    def watched(self, look: Callable[[], None] | None = None) -> Iterator[None]:
        """Jobs can be cancelled inside, and `look` is called now and then; Spark's errors become ours."""
        watcher = threading.Thread(target=self._watch, args=(look,), name=f"{self.tag}-watch", daemon=True)
        watcher.start()
        try:
            yield
        except (PySparkException, Py4JError) as error:
            self.check()
            self.cancel()
            raise as_spillway_error(error) or ComputeError(f"Spark failed: {first_line(error)}") from error
        except BaseException:
            self.cancel()
            raise
        finally:
            self._ended.set()
            watcher.join()

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Jobs that this thread starts inside belong to the run."""
        self._context.addJobTag(self.tag)
        try:
            yield
        finally:
            self._context.removeJobTag(self.tag)

    @contextmanager
    def described(self, description: str) -> Iterator[None]:
        """The same, with a description and a scheduler pool of that name."""
        names = ("spark.scheduler.pool", "spark.job.description")
        for name in names:
            self._context.setLocalProperty(name, description)
        try:
            with self.tagged():
                yield
        finally:
            for name in names:
                self._context.setLocalProperty(name, None)  # type: ignore[arg-type]

    def _watch(self, look: Callable[[], None] | None) -> None:
        looked = time.monotonic()
        while not self._ended.wait(CANCEL_SECONDS):
            if self._cancelled.is_set():
                self._context.cancelJobsWithTag(self.tag)
            elif look is not None and time.monotonic() > looked + LOOK_SECONDS:
                look()
                looked = time.monotonic()


def first_line(error: Exception) -> str:
    """What Spark says, without its plan and stack."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage()).strip()
    return text.splitlines()[0] if text else type(error).__name__
