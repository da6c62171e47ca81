"""A time limit for an engine that can be told to stop.

The engine may go on for a moment, or begin another job before it hears of it: it is told until it has ended.
Known limit: what does not listen (a plan search in Spark's driver) ends when it ends.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from spillway.errors import ComputeError

AGAIN_SECONDS = 0.2
T = TypeVar("T")


class TimeIsOverError(ComputeError):
    """An engine was stopped because its time was over."""

    def __init__(self, limit_seconds: float) -> None:
        super().__init__(f"stopped after {limit_seconds:g} s")
        self.limit_seconds = limit_seconds


def within(limit_seconds: float, action: Callable[[], T], cancel: Callable[[], object]) -> T:
    """What `action` gives; `cancel` is called when time is over, and `TimeIsOverError` says so."""
    ended, is_over = threading.Event(), threading.Event()

    def watch() -> None:
        if ended.wait(limit_seconds):
            return
        is_over.set()
        cancel()
        while not ended.wait(AGAIN_SECONDS):
            cancel()

    watcher = threading.Thread(target=watch, name="time-limit", daemon=True)
    watcher.start()
    try:
        return action()
    except Exception as error:
        if is_over.is_set():
            raise TimeIsOverError(limit_seconds) from error
        raise
    finally:
        ended.set()
        watcher.join()
