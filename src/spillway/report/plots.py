"""The plots of a report: each a name, a title, a line that says how to read it, and what to draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spillway.manager.journal import EpochEntry
from spillway.report import series
from spillway.report.series import Line, RunningTime
from spillway.report.svg import COLOURS, Draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MB = 1e6


@dataclass(frozen=True, slots=True)
class Plot:
    name: str
    title: str
    note: str
    draw: Draw


def plots(epochs: Sequence[EpochEntry], time: RunningTime) -> tuple[Plot, ...]:
    """The plots that the journal has data for, in the order of the page."""
    made = [
        Plot(
            "throughput",
            "Input throughput",
            "Rows per second of each epoch with input; clean-up epochs take none.",
            _throughput(epochs, time),
        ),
        Plot(
            "memory",
            "Resident memory per processor",
            "State in memory as epochs end. A triangle is a spill, at the state that caused it.",
            _memory(epochs, time),
        ),
        Plot("results", "Results so far", "At run time, and added by clean-up.", _results(epochs, time)),
    ]
    if series.productivity(epochs):
        made.append(
            Plot(
                "productivity",
                "Productivity of groups",
                "Results at run time per kilobyte of state, all generations; darker: spilled more often.",
                _productivity(epochs),
            )
        )
    made.append(
        Plot("phases", "Phases of epochs", "Where the time of each epoch went.", _phases(epochs, time))
    )
    if series.lateness(epochs, time):
        made.append(
            Plot(
                "lateness",
                "Late and expired rows",
                "Late rows came after the watermark and do not count; expired rows left their window.",
                _lateness(epochs, time),
            )
        )
    return tuple(made)


def _throughput(epochs: Sequence[EpochEntry], time: RunningTime) -> Draw:
    def draw(axes: "Axes") -> None:
        line = series.throughput(epochs, time)
        axes.plot(line.seconds, line.values, marker=_marker(line), markersize=3)
        axes.set_ylabel("rows/s")
        _finish(axes, time, legend=False)

    return draw


def _memory(epochs: Sequence[EpochEntry], time: RunningTime) -> Draw:
    def draw(axes: "Axes") -> None:
        for number, line in enumerate(series.memory(epochs, time)):
            values = [value / MB for value in line.values]
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(line.seconds, values, label=line.label, color=colour)
        marks = series.spill_marks(epochs, time)
        colours = [COLOURS[mark.processor % len(COLOURS)] for mark in marks]
        if marks:
            heights = [mark.resident_bytes / MB for mark in marks]
            places = [mark.seconds for mark in marks]
            axes.scatter(places, heights, marker="v", s=22, c=colours, label="spill", zorder=3)
        budget, state = epochs[-1].budget_bytes, epochs[-1].state_bytes
        if budget is not None:
            axes.axhline(budget / MB, color="#a02020", linewidth=1, label="budget")
        if state is not None:
            axes.axhline(state / MB, color="#a02020", linewidth=1, linestyle=":", label="state above: spill")
        axes.set_ylabel("MB")
        _finish(axes, time)

    return draw


def _results(epochs: Sequence[EpochEntry], time: RunningTime) -> Draw:
    def draw(axes: "Axes") -> None:
        at_run_time, in_cleanup = series.results(epochs, time)
        axes.stackplot(
            at_run_time.seconds,
            at_run_time.values,
            in_cleanup.values,
            labels=[at_run_time.label, in_cleanup.label],
            colors=COLOURS[:2],
            alpha=0.75,
        )
        axes.set_ylabel("results")
        _finish(axes, time)

    return draw


def _productivity(epochs: Sequence[EpochEntry]) -> Draw:
    def draw(axes: "Axes") -> None:
        groups = series.productivity(epochs)
        most = max(1, *(group.spills for group in groups)) if groups else 1
        shades = [(0.18, 0.43, 0.62, 0.35 + 0.65 * group.spills / most) for group in groups]
        heights = [group.results_per_byte * 1000 for group in groups]
        axes.bar([group.group for group in groups], heights, width=1.0, color=shades)
        axes.set_xlabel("group")
        axes.set_ylabel("results/kB")

    return draw


def _phases(epochs: Sequence[EpochEntry], time: RunningTime) -> Draw:
    def draw(axes: "Axes") -> None:
        lines = series.phases(epochs, time)
        axes.stackplot(
            lines[0].seconds,
            *(line.values for line in lines),
            labels=[line.label for line in lines],
            colors=COLOURS[: len(lines)],
            alpha=0.75,
        )
        axes.set_ylabel("s per epoch")
        _finish(axes, time)

    return draw


def _lateness(epochs: Sequence[EpochEntry], time: RunningTime) -> Draw:
    def draw(axes: "Axes") -> None:
        for line in series.lateness(epochs, time):
            axes.plot(line.seconds, line.values, label=line.label)
        axes.set_ylabel("rows")
        _finish(axes, time)

    return draw


def _finish(axes: "Axes", time: RunningTime, *, legend: bool = True) -> None:
    for restart in time.restarts:
        axes.axvline(restart, color="#555555", linewidth=0.8, linestyle="--")
    axes.set_xlabel("seconds" + (" (dashed: restarts, time between runs left out)" if time.restarts else ""))
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.6g}")
    if legend:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _marker(line: Line) -> str:
    return "o" if len(line.values) <= 60 else ""
