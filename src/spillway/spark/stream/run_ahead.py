"""Lets Spark plan the next batch while the epoch of the last one still runs.

Spark takes a batch as done when foreachBatch returns: it notes that, tells the sources, lists their files and
plans the next batch, a tenth of a second during which processors would wait. A query that works off a backlog
returns at once instead and runs its epochs in a thread of their own, one after the other. (A live one does
not: what is planned early has less input, and a row would wait for an epoch more.)

Invariant: the manifest alone says what was taken in. Spark's own log may be one batch ahead of it, never more
(`RunAhead.begin` waits for the epoch before), and a restart first takes back what is ahead (`rewind`).
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from spillway.spark.jvm import elements
from spillway.spark.sources import FILE_FORMATS, SPARK_DIRECTORY, WorkloadSource
from spillway.state.storage import Storage

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

RETAINED = "spark.sql.streaming.minBatchesToRetain"
LEAST_RETAINED = 3
"""A batch that is run again needs its own offsets and those before; a later one may be planned already."""
CLEAN_SOURCE = "cleansource"
KEEPERS = frozenset({*FILE_FORMATS, "delta", "kafka", "rate", "rate-micro-batch", WorkloadSource.name()})
"""Sources to which it means nothing that a batch is done: it can be read again. Others may drop its rows."""
STATELESS = frozenset(
    {"Project", "Filter", "Union", "Generate", "SubqueryAlias", "View", "EventTimeWatermark"}
)
"""Operators that keep nothing from batch to batch."""


class RunAhead:
    """Does the work of batches in a thread of its own, in order, one at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spillway-epochs")
        self._running: Future[None] | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Wait for the batch before, then return while this one is worked at. Raises what went wrong.

        The first one is waited for: if it fails on every restart, Spark must not plan more each time. A file
        source never takes back what it has planned, and adds to it: the next batch would only grow.
        """
        is_first = self._running is None
        self._settle()
        self._running = self._thread.submit(work)
        if is_first:
            self._settle()

    def close(self) -> None:
        """Wait for the last batch. Raises what went wrong with it."""
        self._thread.shutdown(wait=True)
        self._settle()

    def _settle(self) -> None:
        if self._running is not None:
            self._running.result()


def can_run_again(frame: DataFrame) -> bool:
    """Whether any batch of a stream can be read again after Spark has taken it as done."""
    retained = int(frame.sparkSession.conf.get(RETAINED) or 0)
    return retained >= LEAST_RETAINED and _is_kept(frame._jdf.queryExecution().analyzed())


def _is_kept(plan: "JavaObject") -> bool:
    if not plan.isStreaming():
        return True
    kind = plan.getClass().getSimpleName()
    if kind == "StreamingRelation":
        source = plan.dataSource()
        return source.className().lower() in KEEPERS and not _cleans(source.options().toSeq())
    if kind == "StreamingRelationV2":
        return bool(plan.sourceName().lower() in KEEPERS)
    return kind in STATELESS and all(_is_kept(child) for child in elements(plan.children()))


def _cleans(options: "JavaObject") -> bool:
    """Whether a file source removes the files of batches that are done."""
    found = {pair._1().lower(): pair._2().lower() for pair in elements(options)}
    return bool(found.get(CLEAN_SOURCE, "off") != "off")


def rewind(storage: Storage, batch_id: int) -> None:
    """Let Spark go on with the batch after this one, though it may have noted that one as done.

    If it has noted more, it was not left like this by a query of Spillway: nothing is changed, and the engine
    refuses the batch that does not fit.
    """
    done = _files(storage, "commits")
    if max(done, default=batch_id) != batch_id + 1:
        return
    planned = _files(storage, "offsets")
    storage.delete(name for batch, names in planned.items() if batch > batch_id + 1 for name in names)
    storage.delete(done[batch_id + 1])


def _files(storage: Storage, log: str) -> dict[int, list[str]]:
    """The files of one of Spark's logs by batch, with their checksums."""
    found: dict[int, list[str]] = {}
    for name in storage.entries(f"{SPARK_DIRECTORY}/{log}"):
        number = name.removeprefix(".").removesuffix(".crc")
        if number.isdecimal():
            found.setdefault(int(number), []).append(f"{SPARK_DIRECTORY}/{log}/{name}")
    return found
