"""What commands print: progress to standard error, the result to standard output, JSON as its last line.

With `--json`, standard output is one JSON object and nothing else, also for errors. With `--quiet` only
errors and results are shown, with `--verbose` also what Spark says. Values that a job file took from the
environment are shown as `${NAME}`.
"""

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spillway.redaction import redacted, redacted_values

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

_PLAIN_GAP_SECONDS = 5.0
STARTING_SPARK = "starting Spark ..."


class Verbosity(Enum):
    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_VERBOSITY: ContextVar[Verbosity] = ContextVar("verbosity", default=Verbosity.NORMAL)
"""Of the command that runs. Its threads do not inherit it: what they use asks when it is made."""


def set_verbosity(verbosity: Verbosity) -> None:
    _VERBOSITY.set(verbosity)
    warns = verbosity is not Verbosity.QUIET
    logging.getLogger("spillway").setLevel(logging.WARNING if warns else logging.ERROR)


def is_quiet() -> bool:
    return _VERBOSITY.get() is Verbosity.QUIET


def is_verbose() -> bool:
    return _VERBOSITY.get() is Verbosity.VERBOSE


def moves(console: "Console") -> bool:
    """Whether lines may change in place: on a terminal that nothing else writes to."""
    return console.is_terminal and _VERBOSITY.get() is Verbosity.NORMAL


def print_json(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(redacted_values(dict(value))) + "\n")
    sys.stdout.flush()


def print_text(text: str) -> None:
    """The result of a command."""
    sys.stdout.write(redacted(text) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A line for the reader, on standard error, unless the command is quiet."""
    if not is_quiet():
        complain(text)


def complain(text: str) -> None:
    """A line for the reader in any case: an error, or results that are missing."""
    sys.stderr.write(redacted(text) + "\n")
    sys.stderr.flush()


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for the reader; long cells are wrapped, not cut off."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*heads, box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def clear_line() -> None:
    """Remove a progress line from the terminal and show the cursor, which it hides."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K\x1b[?25h")
        sys.stderr.flush()


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Show on a terminal that something is being started, until it is."""
    from rich.console import Console

    console = Console(stderr=True)
    if moves(console):
        with console.status(what):
            yield
    else:
        yield


class ProgressLine:
    """Shows the progress of a run: one changing line on a terminal, a line every few seconds elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        console = Console(stderr=True)
        self._status: Status | None = console.status(STARTING_SPARK) if moves(console) else None
        self._is_quiet = is_quiet()
        self._started = time.monotonic()
        self._shown = 0.0
        self._input_rows = 0
        self._results = 0

    def __enter__(self) -> "ProgressLine":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def epoch(self, entry: Mapping[str, Any]) -> None:
        """A listener for a query's epochs."""
        self._input_rows += entry["input_rows"]
        self._results += entry["results"]
        line = self._line(entry)
        now = time.monotonic()
        if self._status is not None:
            self._status.update(redacted(line))
        elif not self._is_quiet and now - self._shown >= _PLAIN_GAP_SECONDS:
            self._shown = now
            say(line)

    def _line(self, entry: Mapping[str, Any]) -> str:
        seconds = max(time.monotonic() - self._started, 1e-9)
        memory = ", ".join(f"{processor['resident_bytes'] / 1e6:.0f}" for processor in entry["processors"])
        pending = f" | {entry['pending_rows']:,} rows pending" if entry["pending_rows"] else ""
        return (
            f"epoch {entry['sequence']} | {self._input_rows:,} rows in "
            f"({self._input_rows / seconds:,.0f}/s) | {self._results:,} results{pending} | memory {memory} MB"
        )
