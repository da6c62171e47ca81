"""Signals that end a command: what they raise, how a run is asked to stop, and the exit code.

Exit codes are those that shells use: 130 for SIGINT, 143 for SIGTERM. A command that was interrupted but
finished its work all the same exits with 0: that code always means that nothing is missing.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from spillway.cli.output import say

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SIGNAL_EXIT = 128
"""Added to the number of a signal, the exit code of a command that it ended."""
AT_ONCE = "nothing that was not committed yet is in the result; run the command again to go on"


class InterruptError(BaseException):
    """A signal ended the command. No `Exception`, so that nobody on the way takes it for a failure."""

    def __init__(self, number: int, message: str = AT_ONCE) -> None:
        self.name = signal.Signals(number).name
        super().__init__(f"interrupted by {self.name}: {message}")


@dataclass(slots=True)
class Asked:
    """Whether a signal has asked the command to stop, and which."""

    number: int | None = None

    @property
    def name(self) -> str | None:
        return None if self.number is None else signal.Signals(self.number).name


def exit_code_of(name: str) -> int:
    """The exit code of a command that the signal of this name ended."""
    return SIGNAL_EXIT + signal.Signals[name]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While it lasts, a signal raises `InterruptError`; so does the interrupt of a Spark session."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise InterruptError(number)

    try:
        with _handled(end):
            yield
    except KeyboardInterrupt:  # a Spark session has its own handler of SIGINT, which raises this
        raise InterruptError(signal.SIGINT) from None


@contextmanager
def interruptible(ask: Callable[[], None], message: str) -> Iterator[Asked]:
    """While it lasts, the first signal says `message` and calls `ask`; a second one ends the command."""
    asked = Asked()

    def stop(number: int, _frame: FrameType | None) -> None:
        if asked.number is not None:
            raise InterruptError(number)
        asked.number = number
        say(message)
        ask()

    with _handled(stop):
        yield asked


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Only the main thread can have handlers; in another one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
