"""Input by a loop of our own over files: list, plan, put on record, give out the batch.

No micro-batch is planned by Spark, and the manifest is the only truth about what was read: plans above it are
dropped at a restart. `until = "exhausted"` reads the files that are there at the start, and plans the next
batch while an epoch runs. A live query looks again after each batch: at once with a trigger's next beat, else
after a short pause that grows while nothing comes.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from pyspark.sql import DataFrame

from spillway.manager.files import FileBatch, FileEntry, FilePlanner
from spillway.policy import MeasuredEpoch
from spillway.spark.stream.input import InputBatch, OnBatch

NO_PLAN = "No physical plan. Waiting for data."
"""Spark's words before the first batch."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When a live query looks for files."""

    trigger_seconds: float | None = None
    """As Spark's processing-time trigger: beats are multiples of it; None: as soon as possible."""
    least_pause_seconds: float = 0.01
    """Spark's own polling delay."""
    most_pause_seconds: float = 0.1

    def pause(self, before: float, listing_seconds: float) -> float:
        """The pause after a listing that found nothing; at least as long as the listing took."""
        return max(min(2 * before, self.most_pause_seconds), self.least_pause_seconds, listing_seconds)

    def next_beat(self, wall: float) -> float:
        """The first beat after this time."""
        assert self.trigger_seconds is not None
        return (wall // self.trigger_seconds + 1) * self.trigger_seconds


class FileLoop:
    def __init__(
        self,
        planner: FilePlanner,
        frame_of: Callable[[FileBatch], DataFrame],
        committed: Callable[[], int],
        pace: Pace | None = None,
        *,
        plan_of: Callable[[FileBatch], DataFrame] | None = None,
        plans_frames: bool = True,
        clock: Callable[[], float] = time.perf_counter,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`committed` is the last batch of the manifest. With a `pace` the input comes for ever.

        `plan_of` gives the frame of a batch with its whole plan, to explain it. `plans_frames`: whether
        DataFrames are made ahead, because epochs need them.
        """
        self._planner = planner
        self._frame_of = frame_of
        self._plan_of = plan_of or frame_of
        self._committed = committed
        self._pace = pace
        self._plans_frames = plans_frames
        self._clock, self._wall = clock, wall
        self._stopping = threading.Event()
        self._has_ended = False
        self._wake = threading.Event()
        """Cuts a pause short."""
        self._change = threading.Condition()
        self._listings = self._empty_listing = 0
        """How many listings have begun; the number of the last one that found nothing."""
        self._pause = 0.0
        self._last: FileBatch | None = None
        """The batch that is worked at, or was."""

    @property
    def is_cut(self) -> bool:
        return self._stopping.is_set() and not self._has_ended

    @property
    def is_waiting(self) -> bool:
        return self._empty_listing == self._listings

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def run(self, on_batch: OnBatch) -> None:
        try:
            if self._pace is None:
                self._work_off(on_batch)
            else:
                self._follow(on_batch, self._pace)
        finally:
            with self._change:
                self._change.notify_all()

    def process_all_available(self, is_active: Callable[[], bool]) -> None:
        with self._change:
            wanted = self._listings + 1
            while is_active() and not self._has_ended and self._empty_listing < wanted:
                self._wake.set()
                self._change.wait(0.1)

    def of(self, batch_id: int, relation: int, source: int) -> list[str]:  # noqa: ARG002 - of the protocol
        """The files of a relation in the batch that is worked at, as addresses."""
        assert self._last is not None and self._last.batch_id == batch_id
        return [_address(entry) for entry in self._last.files[source]]

    def explain(self, extended: bool) -> None:
        if self._last is None:
            print(NO_PLAN)  # noqa: T201 - as Spark's own
        else:
            self._plan_of(self._last).explain(extended)

    def _work_off(self, on_batch: OnBatch) -> None:
        """All files that are there now; the next batch is planned while one is worked at."""
        self._list()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="spillway-plan") as ahead:
            upcoming = ahead.submit(self._planned_ahead)
            while not self._stopping.is_set():
                batch = upcoming.result()
                if batch is None:
                    self._has_ended = True
                    self._note_empty()
                    return
                upcoming = ahead.submit(self._planned_ahead)
                self._work(batch, on_batch)

    def _follow(self, on_batch: OnBatch, pace: Pace) -> None:
        while not self._stopping.is_set():
            beat = None if pace.trigger_seconds is None else pace.next_beat(self._wall())
            began = self._clock()
            self._list()
            listing_seconds = self._clock() - began
            batch = self._plan()
            if batch is None:
                self._note_empty()
                self._rest(pace, beat, listing_seconds)
                continue
            self._pause = 0.0
            self._work(InputBatch(batch.batch_id, partial(self._frame_of, batch), batch), on_batch)
            if beat is not None:
                self._sleep(beat - self._wall())

    def _rest(self, pace: Pace, beat: float | None, listing_seconds: float) -> None:
        if beat is not None:
            self._sleep(beat - self._wall())
            return
        self._pause = pace.pause(self._pause, listing_seconds)
        self._sleep(self._pause)

    def _sleep(self, seconds: float) -> None:
        self._wake.wait(max(0.0, seconds))
        if not self._stopping.is_set():
            self._wake.clear()

    def _list(self) -> None:
        with self._change:
            self._listings += 1
        self._planner.refresh()

    def _note_empty(self) -> None:
        with self._change:
            self._empty_listing = self._listings
            self._change.notify_all()

    def _plan(self) -> FileBatch | None:
        return self._planner.plan(self._committed(), live=self._pace is not None)

    def _planned_ahead(self) -> InputBatch | None:
        batch = self._plan()
        if batch is None:
            return None
        if not self._plans_frames:
            return InputBatch(batch.batch_id, partial(self._frame_of, batch), batch)
        frame = self._frame_of(batch)
        return InputBatch(batch.batch_id, lambda: frame, batch)

    def _work(self, batch: InputBatch, on_batch: OnBatch) -> None:
        files = batch.files
        assert files is not None
        self._planner.check(files)
        self._last = files
        began = self._clock()
        rows = on_batch(batch)
        self._planner.learn(files, MeasuredEpoch(rows, self._clock() - began))


def _address(entry: FileEntry) -> str:
    return entry.path if "://" in entry.path else f"file://{quote(entry.path)}"
