"""What commands print: progress to standard error, the result to standard output, JSON as its last line.

With `--json`, standard output is one JSON object and nothing else, also for errors. Values that a job file
took from the environment are shown as `${NAME}`.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spillway.redaction import redacted, redacted_values

if TYPE_CHECKING:
    from rich.status import Status

_PLAIN_GAP_SECONDS = 5.0


def print_json(value: Mapping[str, Any]) -> None:
    print_text(json.dumps(redacted_values(dict(value))))


def print_text(text: str) -> None:
    """The result of a command."""
    sys.stdout.write(redacted(text) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A line for the reader, on standard error."""
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


class ProgressLine:
    """Shows the progress of a run: one changing line on a terminal, a line every few seconds elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        console = Console(stderr=True)
        self._status: Status | None = console.status("starting Spark") if console.is_terminal else None
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
        elif now - self._shown >= _PLAIN_GAP_SECONDS:
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
