"""Time, as the manager sees it. It comes from outside, so a simulator can drive the same engine.

Nothing else in this package reads the machine's clock: decisions depend on `seconds`, the journal on both.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def seconds(self) -> float:
        """Seconds since any moment; never fewer than before."""
        ...

    def wall(self) -> float:
        """Seconds since 1970."""
        ...


class SystemClock:
    """The clock of this machine."""

    def seconds(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()
