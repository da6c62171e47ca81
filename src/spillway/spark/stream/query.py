"""A running view: the handle that the user holds, shaped like Spark's `StreamingQuery`.

A thread of its own runs the input, whose batches become epochs, drains what is pending when the input is
exhausted, and closes everything. Epochs never overlap; `stop` waits for the one that runs. The next batch may
be planned meanwhile.
"""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from spillway.detail_log import DetailLog
from spillway.errors import SpillwayError
from spillway.manager import Cleaning, Engine, InputEnd
from spillway.manager.journal import EpochEntry
from spillway.manager.relocation import Decision
from spillway.model import group_set, to_json
from spillway.spark.jvm import as_spillway_error, first_cause
from spillway.spark.sources import SourceCheck
from spillway.spark.stream.batch_rows import BatchRows
from spillway.spark.stream.epoch import SparkEpoch
from spillway.spark.stream.input import InputBatch, QueryInput

RECENT = 100
Listener = Callable[[dict[str, Any]], None]


class _StoppedError(Exception):
    """The query was asked to stop before this epoch began."""


class Query:
    """Use `Session.run` to get one. Input that comes for ever has no `input_end`."""

    def __init__(
        self,
        query_id: str,
        engine: Engine,
        input_: QueryInput | None,
        epoch: SparkEpoch,
        close: Callable[[], None],
        *,
        budget_is_hard: bool,
        clean_at_end: bool,
        input_end: InputEnd | None = None,
        check: SourceCheck | None = None,
        listener: Listener | None = None,
        log: DetailLog | None = None,
    ) -> None:
        self.id = query_id
        self.runId = str(uuid.uuid4())
        self.name: str | None = None
        self.budget_is_hard = budget_is_hard
        self._clean_at_end = clean_at_end
        self._engine = engine
        self._epoch = epoch
        self._close = close
        self._listener = listener
        self._log = log
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._peak: dict[int, tuple[int, int]] = {}
        self._run_input_rows = self._run_results = self._run_epochs = 0
        self._error: SpillwayError | None = None
        self._stopping = threading.Event()
        self._one_epoch = threading.RLock()
        """Held while an epoch runs; a listener, which is called inside, may ask for moves."""
        self._check = check
        self._malformed_rows = 0
        self._input = input_
        self._input_end = input_end
        self._has_read_all = input_end is None or (
            input_ is None and input_end.is_reached(engine.manifest.batch_id)
        )
        self._started = time.perf_counter()
        self._seconds: float | None = None
        self._thread = threading.Thread(target=self._work, name=f"spillway-{query_id[:8]}", daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802 - the names of Spark's StreamingQuery
        return self._thread.is_alive()

    @property
    def status(self) -> dict[str, Any]:
        manifest = self._engine.manifest
        waits = self.isActive and self._input is not None and self._input.is_waiting
        message = (
            "Stopped"
            if not self.isActive
            else "Draining"
            if manifest.pending_rows
            else "Waiting for data to arrive"
            if waits
            else "Running"
        )
        return {
            "message": message,
            "isActive": self.isActive,
            "isDataAvailable": self.isActive and not waits,
            "isTriggerActive": self.isActive and not waits,
            "pendingRows": manifest.pending_rows,
        }

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        return self._recent[-1] if self._recent else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802
        return list(self._recent)

    def exception(self) -> SpillwayError | None:
        return self._error

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Wait for the end; False if it has not come after `timeout` seconds. Raises what went wrong."""
        self._thread.join(timeout)
        if self.isActive:
            return False
        if self._error is not None:
            raise self._error
        return True

    def request_stop(self) -> None:
        """Begin to stop, without waiting for it; safe in a signal handler."""
        threading.Thread(target=self.stop, name="spillway-stop", daemon=True).start()

    def stop(self) -> None:
        """Finish the epoch that runs, commit it, and stop; a restart goes on from there."""
        self._stopping.set()
        with self._one_epoch:
            pass  # no epoch begins any more; to keep the lock would block the stream's own thread
        if self._input is not None:
            self._input.stop()
        self._thread.join()

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until all input that is there now is in the sink. Raises what went wrong."""
        if self._input is not None:
            self._input.process_all_available(lambda: self.isActive)
        if self._error is not None:
            raise self._error

    def explain(self, extended: bool = False) -> None:
        """Print Spark's plan of the last batch: how its rows reach the processors."""
        if self._input is not None:
            self._input.explain(extended)

    def cleanup(self) -> None:
        """Produce all results that are missing between generations, now; input waits meanwhile.

        A query that has stopped produces nothing any more: start it again, or use `Session.cleanup_job`.
        """
        engine = self._engine
        while engine.has_cleanup and not self._stopping.is_set():
            if engine.has_pending and not engine.has_cursor:
                self._run_epoch(None, from_cleanup=True)  # a tree: what a join missed is input of the next
            else:
                self._clean_once(Cleaning.ALL)

    def rebalance(self) -> list[str]:
        """Spread the groups evenly over the processors, from the next epoch on; the refusals, if any."""
        with self._one_epoch:
            return _refusals(self._engine.controller.rebalance(self._engine.manifest))

    def move(self, groups: Iterable[int], to: int) -> list[str]:
        """Move partition groups to a processor, from the next epoch on; the refusals, if any."""
        with self._one_epoch:
            count, wanted = len(self._engine.manifest.placement), sorted(set(groups))
            unknown = [group for group in wanted if not 0 <= group < count]
            if unknown:
                raise SpillwayError(
                    f"move: there are no groups {unknown}; they are numbered 0 to {count - 1}"
                )
            return _refusals(self._engine.controller.move(self._engine.manifest, group_set(wanted), to))

    def resize(self, processors: int) -> None:
        """Use another number of processors, from the next epoch on; groups move while the query runs.

        A restart begins with the number of its job again.
        """
        self._engine.controller.check_size(processors)
        with self._one_epoch:
            self._engine.controller.resize(self._engine.manifest, processors)

    @property
    def placement(self) -> tuple[int, ...]:
        """The processor of each group."""
        return self._engine.manifest.placement

    def missing(self) -> list[str]:
        """What the sink does not have yet of the view over all input; nothing when the query is done.

        Input that comes for ever has no end: then what was read counts.
        """
        manifest = self._engine.manifest
        found = []
        if not self._has_read_all:
            found.append("input that was not read")
        if manifest.pending_rows:
            found.append(f"results of {manifest.pending_rows:,} rows that wait")
        if manifest.split_groups:
            groups = manifest.split_groups.bit_count()
            found.append(f"results between the generations of {groups:,} groups that were spilled")
        return found

    def summary(self) -> dict[str, Any]:
        """Totals over all restarts; time, memory, malformed rows and `run_...` are of this run."""
        counters, missing = self._engine.manifest.counters, self.missing()
        elapsed = time.perf_counter() - self._started if self._seconds is None else self._seconds
        return {
            "query_id": self.id,
            "input_rows": counters.input_rows,
            "results_runtime": counters.results_runtime,
            "results_cleanup": counters.results_cleanup,
            "epochs": counters.epochs,
            "run_input_rows": self._run_input_rows,
            "run_results": self._run_results,
            "run_epochs": self._run_epochs,
            "spills": counters.spills,
            "relocations": counters.relocations,
            "late_rows": counters.late_rows,
            "null_time_rows": counters.null_time_rows,
            "malformed_rows": self._malformed_rows,
            "expired_rows": counters.expired_rows,
            "pending_rows": self._engine.manifest.pending_rows,
            "seconds": round(elapsed, 3),
            "resident_bytes_peak": [self._peak[processor][0] for processor in sorted(self._peak)],
            "memory_bytes_peak": [self._peak[processor][1] for processor in sorted(self._peak)],
            "budget_is_hard": self.budget_is_hard,
            "complete": not missing,
            "missing": missing,
        }

    def _work(self) -> None:
        was_asked = False
        try:
            try:
                self._live()
            finally:
                was_asked = self._stopping.is_set()
                self._end()
        except Exception as error:
            # stop() interrupts the stream, so Spark errors are expected then; a SpillwayError never is.
            ours = as_spillway_error(error)
            if ours is not None or not was_asked:
                self._error = ours or SpillwayError(first_cause(error))
                self._error.__cause__ = error
                if self._log is not None:
                    self._log.record(self._error)

    def _live(self) -> None:
        self._drain()
        if self._input is not None and not self._stopping.is_set():
            self._input.run(self._process_batch)
            if self._input_end is not None and not self._input.is_cut:
                self._input_end.note(self._engine.manifest.batch_id)
                self._has_read_all = True
        engine = self._engine
        if self._clean_at_end:
            self._drain(ending=True)
            while (engine.has_cleanup or engine.has_pending) and not self._stopping.is_set():
                self.cleanup()
                self._drain(ending=True, from_cleanup=True)

    def _end(self) -> None:
        self._seconds = time.perf_counter() - self._started
        self._stopping.set()
        with self._one_epoch:  # a clean-up that another thread asked for may be running
            self._close()

    def _process_batch(self, batch: InputBatch) -> int:
        """Run the epochs of a batch; how many input rows it had."""
        if self._engine.is_committed(batch.batch_id):
            return 0
        rows = self._run_epoch(batch)
        while self._engine.has_backlog and not self._stopping.is_set():
            self._run_epoch(None)
        for due, cleaning in (
            (self._engine.has_expiring, Cleaning.EXPIRING),
            (self._engine.has_room, Cleaning.RETURNING),
        ):
            if due and not self._engine.has_cursor:
                self._clean_once(cleaning)
        return rows

    def _drain(self, *, ending: bool = False, from_cleanup: bool = False) -> None:
        """Epochs over what is pending, until nothing is or the query is to stop.

        At the end of the input, or on demand, suspended groups get their turns too.
        """
        engine = self._engine
        while (engine.has_pending or (ending and engine.has_waiting)) and not self._stopping.is_set():
            self._run_epoch(None, ending=ending, from_cleanup=from_cleanup)

    def _run_epoch(
        self, batch: InputBatch | None, *, ending: bool = False, from_cleanup: bool = False
    ) -> int:
        with self._one_epoch:
            if self._stopping.is_set():
                # To return would let the input count the batch as done.
                raise _StoppedError
            while self._engine.has_cursor:
                self._clean(Cleaning.RESUMED)
            malformed = 0
            if self._check is not None and batch is not None:
                malformed = self._check.malformed_rows(batch.batch_id)
            entry = self._engine.run_epoch(
                self._execute(None if batch is None else batch.rows),
                None if batch is None else batch.batch_id,
                ending=ending,
                from_cleanup=from_cleanup,
                malformed_rows=malformed,
            )
            self._malformed_rows += malformed
            self._note(entry)
            return entry.input_rows

    def _clean_once(self, cleaning: Cleaning) -> None:
        with self._one_epoch:
            if not self._stopping.is_set():
                self._clean(cleaning)

    def _clean(self, cleaning: Cleaning) -> None:
        self._note(self._engine.run_cleanup_epoch(self._execute(None), cleaning))

    def _execute(self, rows: BatchRows | None) -> SparkEpoch:
        return replace(self._epoch, batch=rows)

    def _note(self, entry: EpochEntry) -> None:
        told = to_json(entry)
        self._recent.append(self._progress(told))
        self._run_input_rows += entry.input_rows
        self._run_results += entry.results
        self._run_epochs += 1
        for part in entry.processors:
            resident, peak = self._peak.get(part.processor, (0, 0))
            self._peak[part.processor] = max(resident, part.resident_bytes), max(peak, part.peak_bytes)
        if self._listener is not None:
            self._listener(told)

    def _progress(self, entry: dict[str, Any]) -> dict[str, Any]:
        seconds = entry["seconds"]
        return {
            "id": self.id,
            "timestamp": entry["time"],
            "batchId": entry["batch_id"],
            "epoch": entry["sequence"],
            "numInputRows": entry["input_rows"],
            "processedRowsPerSecond": entry["input_rows"] / max(seconds["total"], 1e-9),
            "numOutputRows": entry["results"],
            "pendingRows": entry["pending_rows"],
            "durationMs": {phase: round(value * 1000) for phase, value in seconds.items()},
            "processors": entry["processors"],
        }


def _refusals(decision: Decision) -> list[str]:
    return [refusal.reason for refusal in decision.refused]
