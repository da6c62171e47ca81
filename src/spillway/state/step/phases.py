"""How long a step takes, and how long each phase of it. A phase may be entered any number of times."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """Per phase, by the clock; phases inside others count in both."""
        self._processor_time = time.process_time()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Add the time of a block to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start

    @property
    def busy_seconds(self) -> float:
        """Processor time of this process since the step began."""
        return time.process_time() - self._processor_time
