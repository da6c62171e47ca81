"""A time limit for an engine that can be told to stop.

The engine may run on for a moment, or begin another job first, so it is told repeatedly until it has ended.
Known limit: work that cannot be cancelled (a plan search in Spark's driver) runs to its end.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from spillway.errors import ComputeError

AGAIN_SECONDS = 0.2
T = TypeVar("T")


class TimeIsOverError(ComputeError):
    """An engine was stopped because it exceeded its time limit."""

    def __init__(self, limit_seconds: float) -> None:
        super().__init__(f"stopped after {limit_seconds:g} s")
        self.limit_seconds = limit_seconds


def within(limit_seconds: float, action: Callable[[], T], cancel: Callable[[], object]) -> T:
    """The result of `action`; after the limit `cancel` is called and `TimeIsOverError` raised."""
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
