"""Signals: how a command is asked to stop, how it is ended, and its exit code.

A command runs in its own thread; the main thread only waits for its end or for a signal. So a signal never
breaks into a call to the JVM, and PySpark, which replaces the handler of SIGINT if it is started in the main
thread, leaves ours alone. A command that can stop in an orderly way declares it with `interruptible`. Any
other command, and one that gets a second signal, is ended: the processes that it started are killed, which
harms no result on disk, and its thread gets a moment to clean up.

Exit codes are those that shells use: 130 for SIGINT, 143 for SIGTERM.
Known limit: a thread that does not end within `GRACE_SECONDS` is abandoned with its temporary files.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from types import FrameType

from spillway.cli.output import clear_line, print_json, say

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SIGNAL_EXIT = 128
"""The exit code of a command that a signal ended is this plus the number of the signal."""
GRACE_SECONDS = 5.0
ENDED = 0
"""Read instead of the number of a signal when the command has ended."""
AT_ONCE = "results that were not committed are missing; run the command again to continue"


class InterruptError(BaseException):
    """A signal ended the command. Not an `Exception`, so that no handler takes it for a failure."""

    def __init__(self, number: int, message: str = AT_ONCE) -> None:
        self.name = signal.Signals(number).name
        super().__init__(f"interrupted by {self.name}: {message}")


class _EndedError(BaseException):
    """Raised in the command's thread to unwind it."""


@dataclass(slots=True)
class Asked:
    """Whether a signal has asked the command to stop, and which."""

    number: int | None = None

    @property
    def name(self) -> str | None:
        return None if self.number is None else signal.Signals(self.number).name


@dataclass(frozen=True, slots=True)
class _Orderly:
    """How a command is asked to stop."""

    ask: Callable[[], None]
    message: str
    asked: Asked


class _Command:
    """One command in its thread, which writes a byte to `ended` when its `work` is done."""

    def __init__(self, work: Callable[[], object], ended: int) -> None:
        self._ended = ended
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._orderly: _Orderly | None = None
        self._work = work
        self.thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="command", daemon=True
        )

    def _run(self) -> None:
        _CURRENT.set(self)
        try:
            self._work()
        except BaseException as error:
            self.error = error
        finally:
            os.write(self._ended, bytes([ENDED]))

    def stops_by(self, orderly: _Orderly | None) -> None:
        with self._lock:
            self._orderly = orderly

    def stop(self, number: int) -> bool:
        """Ask the command to stop; False if it cannot be asked, or was asked before."""
        with self._lock:
            orderly = self._orderly
            if orderly is None or orderly.asked.number is not None:
                return False
            orderly.asked.number = number
        say(orderly.message)
        orderly.ask()
        return True

    def end(self) -> None:
        """Unwind the thread. Its calls to killed processes fail, so it does not wait."""
        deadline = time.monotonic() + GRACE_SECONDS
        ended = ctypes.py_object(_EndedError)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread.ident or 0), ended)
        while self.thread.is_alive() and time.monotonic() < deadline:
            _kill_children()
            self.thread.join(0.1)
        _kill_children()


_CURRENT: ContextVar[_Command] = ContextVar("command")


def exit_code_of(name: str) -> int:
    """The exit code of a command that the signal of this name ended."""
    return SIGNAL_EXIT + signal.Signals[name]


def supervise(work: Callable[[], object], *, last: bool = False) -> int:
    """Run a command's `work` in a thread and return its exit code; signals end it as described above. If the
    process ends afterwards (`last`), later signals are ignored; otherwise the old handlers return.
    """
    # A signal may reach any thread; its number is written to a pipe, from which the main thread reads.
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = _Command(work, writing)
    before = {number: signal.signal(number, _wake) for number in SIGNALS}
    woken_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        command.thread.start()
        while (number := os.read(reading, 1)[0]) != ENDED:
            if number in SIGNALS and not command.stop(number):
                return _end_at_once(command, InterruptError(number))
        command.thread.join()  # its last references are gone before Python ends
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if last else handler)
        signal.set_wakeup_fd(woken_before)
        os.close(reading)
        os.close(writing)
    if isinstance(command.error, InterruptError):
        return _tell(command.error)
    if isinstance(command.error, SystemExit):
        code = command.error.code
        return code if isinstance(code, int) else int(code is not None)
    if command.error is not None:
        raise command.error
    return 0


@contextmanager
def interruptible(ask: Callable[[], None], message: str) -> Iterator[Asked]:
    """Inside the block the first signal prints `message` and calls `ask`; the second ends the command."""
    asked = Asked()
    command = _CURRENT.get(None)
    if command is None:  # called as a function by other code, which handles the signals itself
        yield asked
        return
    command.stops_by(_Orderly(ask, message, asked))
    try:
        yield asked
    finally:
        command.stops_by(None)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Does nothing: Python only writes the number of a signal that has a handler."""


def _end_at_once(command: _Command, interrupt: InterruptError) -> int:
    """End the command, without the messages of its libraries about broken connections."""
    clear_line()
    code = _tell(interrupt)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    command.end()
    if command.thread.is_alive():
        os._exit(code)
    hurry = threading.Timer(GRACE_SECONDS, os._exit, (code,))  # threads of libraries may hang on exit
    hurry.daemon = True
    hurry.start()
    return code


def _tell(interrupt: InterruptError) -> int:
    say(str(interrupt))
    if "--json" in sys.argv:
        print_json({"error": str(interrupt), "interrupted": interrupt.name, "complete": False})
    return exit_code_of(interrupt.name)


def _kill_children() -> None:
    import psutil

    this = psutil.Process()
    own = this.children()
    for child in [*this.children(recursive=True), *own]:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(own, timeout=1.0)
