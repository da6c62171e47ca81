"""A lock beside a processor's memory tier: one attempt at a time, and never one of an epoch that is over.

Spark may start a task again while an earlier attempt of it still runs (its stage was given up, for example
because another executor was lost). Both would write and remove images of the same processor. The lock file
holds the number of the last epoch, so a task that stalled for some epochs ends instead of freeing memory that
is in use again.
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
def holding_tier(directory: str, sequence: int, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the tier of a processor in an epoch. The lock goes with the process, however that ends."""
    path = Path(f"{directory}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_seconds
    with path.open("a+") as file:
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
        file.seek(0)
        last = file.read()
        if last.isdecimal() and int(last) > sequence:
            raise StateError(f"a task of epoch {sequence} came late: epoch {last} has begun; it is ignored")
        if last != str(sequence):
            file.truncate(0)
            file.write(str(sequence))
            file.flush()
        yield
