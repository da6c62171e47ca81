"""The progress of a computation: a bar per segment on a terminal, a line per segment elsewhere."""

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from spillway.cli.output import STARTING_SPARK, is_quiet, moves, say

if TYPE_CHECKING:
    from spillway.spark.compute import SegmentEvent


class SegmentBars:
    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console) if moves(console) else None
        self._is_quiet = is_quiet()
        self._start: TaskID | None = None
        self._bars: dict[int, TaskID] = {}

    def __enter__(self) -> "SegmentBars":
        if self._progress is not None:
            self._progress.start()
            self._start = self._progress.add_task(STARTING_SPARK, total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def event(self, event: "SegmentEvent") -> None:
        """A listener for a computation's segments."""
        if self._progress is None:
            if event.finished and not self._is_quiet:
                say(f"segment {event.number + 1} of {event.segments} took {event.seconds:.2f} s")
            return
        if self._start is not None:
            self._progress.remove_task(self._start)
            self._start = None
        if event.finished:
            self._progress.update(self._bars[event.number], total=1, completed=1)
        else:
            label = f"segment {event.number + 1} of {event.segments}"
            self._bars[event.number] = self._progress.add_task(label, total=None)
