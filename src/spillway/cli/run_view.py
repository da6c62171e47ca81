"""The view of a run that adapts: memory against the budget, spills, moves and results, as they happen.

On a terminal a few lines change in place, and spills and moves scroll above them. Elsewhere each of them is
a line, with a line of totals every few seconds. Everything shown comes from the entries of the journal.
Known limit: an entry has the budget of processor 0 only, so all bars are drawn against that one.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spillway.cli.output import say

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_MEGABYTE = 1 << 20
_PLAIN_GAP_SECONDS = 5.0
_REFRESHES_PER_SECOND = 4
_BAR_CELLS = 24
_BUSY_SHARE = 0.9
"""A processor whose peak is above this share of its budget is shown in yellow."""


@dataclass(slots=True)
class RunTotals:
    """What a run did so far, summed over the entries of its epochs."""

    input_rows: int = 0
    results_runtime: int = 0
    results_cleanup: int = 0
    moves: int = 0
    moved_groups: int = 0
    spills: dict[int, int] = field(default_factory=dict)
    """How often each processor spilled."""
    peak_bytes: int = 0
    """The most memory of any processor in any epoch."""
    last: Mapping[str, Any] = field(default_factory=dict)
    """The newest entry."""

    def add(self, entry: Mapping[str, Any]) -> None:
        self.last = entry
        self.input_rows += entry["input_rows"]
        if entry["kind"] == "cleanup":
            self.results_cleanup += entry["results"]
        else:
            self.results_runtime += entry["results"]
        for spill in entry["spills"]:
            self.spills[spill["processor"]] = self.spills.get(spill["processor"], 0) + 1
        for move in entry["relocation"]["switched"]:
            self.moves += 1
            self.moved_groups += len(move["groups"])
        self.peak_bytes = max([self.peak_bytes, *(part["peak_bytes"] for part in entry["processors"])])


def events(entry: Mapping[str, Any]) -> Iterator[str]:
    """What happened in an epoch besides joining, one line each."""
    epoch = f"epoch {entry['sequence']}"
    for spill in entry["spills"]:
        yield (
            f"{epoch}: processor {spill['processor']} spilled {plural(len(spill['groups']), 'group')} "
            f"({megabytes(spill['bytes'])})"
        )
    for move in entry["relocation"]["switched"]:
        yield (
            f"{epoch}: {plural(len(move['groups']), 'group')} moved from processor {move['sender']} "
            f"to processor {move['receiver']} ({megabytes(move['bytes'])})"
        )
    if entry["kind"] == "cleanup" and entry["results"]:
        yield f"{epoch}: clean-up added {entry['results']:,} results of spilled groups{_left(entry)}"


def _left(entry: Mapping[str, Any]) -> str:
    """What clean-up has still to do, and how often it read what was spilled."""
    left = f", {megabytes(entry['missing_bytes'])} left" if entry.get("missing_bytes") else ""
    if not entry.get("spilled_bytes"):
        return left
    return f"{left}; each spilled byte was read {entry['read_bytes'] / entry['spilled_bytes']:.1f} times"


def megabytes(size: float) -> str:
    """A size in the unit in which job files give budgets."""
    return f"{size / _MEGABYTE:.1f} MB"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class RunView:
    """Shows a run while it goes on; used like `ProgressLine`."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self.totals = RunTotals()
        console = Console(stderr=True)
        self._live = (
            Live(console=console, get_renderable=self._render, refresh_per_second=_REFRESHES_PER_SECOND)
            if console.is_terminal
            else None
        )
        self._started = time.monotonic()
        self._shown = self._started

    def __enter__(self) -> "RunView":
        if self._live is None:
            say("starting Spark")
        else:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        elif self.totals.last:
            say(self._line())

    def epoch(self, entry: Mapping[str, Any]) -> None:
        """A listener for a query's epochs."""
        self.totals.add(entry)
        for event in events(entry):
            self._tell(event)
        now = time.monotonic()
        if self._live is None and now - self._shown >= _PLAIN_GAP_SECONDS:
            self._shown = now
            say(self._line())

    def _tell(self, event: str) -> None:
        if self._live is None:
            say(event)
        else:
            self._live.console.print(event, style="dim", highlight=False)

    def _line(self) -> str:
        totals = self.totals
        memory = ", ".join(megabytes(part["resident_bytes"]) for part in totals.last["processors"])
        return (
            f"epoch {totals.last['sequence']}: {totals.input_rows:,} rows in; state: {memory}; results: "
            f"{totals.results_runtime:,} at run time, {totals.results_cleanup:,} from clean-up"
        )

    def _render(self) -> "RenderableType":
        from rich.spinner import Spinner
        from rich.table import Table

        totals = self.totals
        if not totals.last:
            return Spinner("dots", "starting Spark")
        table = Table.grid(padding=(0, 2))
        for part in totals.last["processors"]:
            table.add_row(f"processor {part['processor']}", self._memory(part))
        seconds = max(time.monotonic() - self._started, 1e-9)
        pending = totals.last["pending_rows"]
        parked = f", {pending:,} parked" if pending else ""
        table.add_row(
            "input", f"{totals.input_rows:,} rows{parked}, epoch {totals.last['sequence']}, {seconds:.0f} s"
        )
        table.add_row("moves", f"{plural(totals.moved_groups, 'group')} in {plural(totals.moves, 'move')}")
        table.add_row(
            "results", f"{totals.results_runtime:,} at run time + {totals.results_cleanup:,} from clean-up"
        )
        return table

    def _memory(self, part: Mapping[str, Any]) -> "Text":
        from rich.text import Text

        budget, spills = self.totals.last["budget_bytes"], self.totals.spills.get(part["processor"], 0)
        counted = plural(spills, "spill")
        state, peak = (f"{part[key] / _MEGABYTE:.1f}" for key in ("resident_bytes", "peak_bytes"))
        if not budget:
            return Text(f"state {state}, peak {peak} MB, {counted}")
        told = f"  state {state}, peak {peak} of {megabytes(budget)}, {counted}"
        return bar(part["resident_bytes"], part["peak_bytes"], budget).append(told)


def bar(state_bytes: int, peak_bytes: int, budget_bytes: int) -> "Text":
    """State as full cells, what the epoch needed besides as shaded ones, the rest of the budget as dots."""
    from rich.text import Text

    state = min(_BAR_CELLS, round(_BAR_CELLS * state_bytes / budget_bytes))
    peak = min(_BAR_CELLS, max(state, round(_BAR_CELLS * peak_bytes / budget_bytes)))
    colour = "yellow" if peak_bytes > _BUSY_SHARE * budget_bytes else "green"
    return Text.assemble(
        ("█" * state, colour), ("▒" * (peak - state), colour), ("·" * (_BAR_CELLS - peak), "dim")
    )
