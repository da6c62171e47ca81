"""One attempt of a processor at a time: a lock beside its memory tier.

Spark may start a task again while an earlier attempt of it still runs (its stage was given up, for example
because another executor was lost). Both would write and remove images of the same processor.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spillway.errors import StateError

WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.01


@contextmanager
def holding_tier(directory: str, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the tier of a processor. The operating system gives the lock back when the process ends."""
    path = Path(f"{directory}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_seconds
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StateError(
                        f"an earlier attempt of this task still holds {path} after {wait_seconds:g} s; look "
                        "for a Python worker that hangs on this host, and end it"
                    ) from None
            time.sleep(_LOOK_SECONDS)
        yield
