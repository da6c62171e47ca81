"""Interrupts as requests: the first one asks, a second one ends the process."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from spillway.cli.output import say


@contextmanager
def interruptible(ask: Callable[[], None], message: str) -> Iterator[None]:
    """While it lasts, the first interrupt says `message` and calls `ask`."""
    asked = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        say(message)
        ask()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
