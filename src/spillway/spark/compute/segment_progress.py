"""The progress of a running tree: reports to a listener when each segment starts and, once, when it ends."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spillway.compute import Segment


@dataclass(frozen=True, slots=True)
class SegmentEvent:
    """A segment has started or ended."""

    number: int
    segments: int
    finished: bool
    seconds: float = 0.0


Listener = Callable[[SegmentEvent], None]


class SegmentProgress:
    def __init__(self, tree: Segment, listener: Listener | None) -> None:
        self.numbers = {segment: number for number, segment in enumerate(tree.segments())}
        self._listener = listener
        self._ended: set[Segment] = set()

    def start(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            self._report(segment, 0.0, finished=False)

    def end(self, segments: Iterable[Segment], seconds: float) -> None:
        for segment in segments:
            if segment not in self._ended:
                self._ended.add(segment)
                self._report(segment, seconds, finished=True)

    def _report(self, segment: Segment, seconds: float, *, finished: bool) -> None:
        if self._listener is not None:
            number, count = self.numbers[segment], len(self.numbers)
            self._listener(SegmentEvent(number, count, finished, seconds))
