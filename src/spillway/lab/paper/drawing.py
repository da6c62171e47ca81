"""Figures in the axes of the literature, as SVG files.

Runs: minutes of arrivals or the clock on the x axis, results or memory on the y axis; clean-up during the run
is drawn separately: its results as broken lines, or, with memory, crosses where it restored state. Compute:
relations, query or group size on the x axis, seconds on the y axis. Maintenance: lines over numbers,
otherwise bars.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.errors import JobError
from spillway.lab.paper.compute import ComputeExperiment
from spillway.lab.paper.experiment import Axis, Experiment
from spillway.lab.paper.maintain import ESTIMATED, MaintainExperiment
from spillway.lab.paper.outcome import Outcome, Points
from spillway.lab.paper.tree import TreeExperiment
from spillway.report import draw_svg

MARKS = ("o", "s", "^", "D", "v")


def write_figure(name: str, draw: "Callable[[Axes], None]", directory: Path) -> Path:
    """Draw a figure and write it; returns its path."""
    path = directory / f"figure-{name}.svg"
    text = draw_svg(f"figure-{name.replace('.', '-')}", draw, size_inches=(7.0, 4.6))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JobError(f"figure {path} cannot be written: {error.strerror}") from None
    return path


def draw_figure(
    experiment: Experiment | TreeExperiment, outcomes: Sequence[Outcome], directory: Path
) -> Path:
    """Write `figure-NAME.svg`; returns its path."""
    by_clock = experiment.axis is Axis.RESULTS_BY_CLOCK
    draws_memory = experiment.axis in (Axis.MEMORY, Axis.MEMORY_EACH)
    has_budget = any(outcome.variant.has_budget for outcome in outcomes)

    def draw(axes: "Axes") -> None:
        scale = 1e6 if draws_memory else 1e3
        for number, (label, points) in enumerate(_lines(experiment.axis, outcomes)):
            axes.plot(
                [time for time, _ in points],
                [value / scale for _, value in points],
                label=label,
                color=f"C{number}",
                marker=MARKS[number % len(MARKS)],
                markersize=3,
                linewidth=1.2,
            )
        for number, (label, points) in enumerate(_cleanups(experiment.axis, outcomes)):
            if points:
                axes.plot(
                    [time for time, _ in points],
                    [value / scale for _, value in points],
                    label=f"{label}, clean-up during the run",
                    color=f"C{number}",
                    linestyle="none" if draws_memory else "--",
                    marker="x" if draws_memory else None,
                    linewidth=0.9,
                )
        axes.set_title(f"Figure {experiment.name}: {experiment.title}")
        arrivals = f"minutes of arrivals (one row per {experiment.row_seconds * 1000:g} ms and stream)"
        axes.set_xlabel("seconds by the clock" if by_clock else arrivals)
        axes.set_ylabel("memory (MB)" if draws_memory else "results (thousands)")
        if draws_memory and has_budget:
            axes.axhline(experiment.memory_bytes / 1e6, color="#a02020", linewidth=1, label="budget")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.legend(loc="lower right" if draws_memory else "upper left")

    return write_figure(experiment.name, draw, directory)


def _lines(axis: Axis, outcomes: Sequence[Outcome]) -> list[tuple[str, Points]]:
    if axis is Axis.MEMORY_EACH:
        return [
            (f"{outcome.variant.label}-M{number + 1}", points)
            for outcome in outcomes
            for number, points in enumerate(outcome.memory_each)
        ]
    return [(outcome.variant.label, _points(axis, outcome)) for outcome in outcomes]


def _points(axis: Axis, outcome: Outcome) -> Points:
    if axis is Axis.RESULTS_BY_CLOCK:
        return outcome.results_by_clock
    return outcome.memory if axis is Axis.MEMORY else outcome.results


def _cleanups(axis: Axis, outcomes: Sequence[Outcome]) -> list[tuple[str, Points]]:
    """What clean-up did while input arrived; a run without clean-up has no line."""
    if axis is Axis.RESULTS:
        return [
            (outcome.variant.label, outcome.early_cleanup if len(outcome.early_cleanup) > 1 else ())
            for outcome in outcomes
        ]
    return [(outcome.variant.label, outcome.restored) for outcome in outcomes] if axis is Axis.MEMORY else []


def draw_compute_figure(experiment: ComputeExperiment, metrics: dict[str, Any], directory: Path) -> Path:
    """Write `figure-NAME.svg`; returns its path."""

    def draw(axes: "Axes") -> None:
        for number, (label, points) in enumerate(metrics["seconds"].items()):
            axes.plot(list(points), list(points.values()), label=label, marker=MARKS[number % len(MARKS)])
        axes.set_title(f"Figure {experiment.name}: {experiment.title}")
        axes.set_xlabel(experiment.x_label)
        axes.set_ylabel("processing time (s)")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower right")

    return write_figure(experiment.name, draw, directory)


if TYPE_CHECKING:
    from matplotlib.axes import Axes
_NUMBERS = ("updates", "keys of the query", "join ratio", "changed sources", "ms per 64 bytes")


def draw_maintain_figure(experiment: MaintainExperiment, metrics: dict[str, Any], directory: Path) -> Path:
    """Write `figure-NAME.svg`; returns its path."""
    lines: dict[str, dict[str, float]] = metrics["lines"]
    if experiment.name.startswith("table-"):  # the drawing shows ratios; the seconds are in the table only
        lines = {label: points for label, points in lines.items() if "over" in label}

    def draw(axes: "Axes") -> None:
        if experiment.x_label in _NUMBERS:
            for number, (label, points) in enumerate(lines.items()):
                style = "--" if ESTIMATED in label else "-"
                xs = [float(x) for x in points]
                axes.plot(xs, list(points.values()), style, label=label, marker=MARKS[number % len(MARKS)])
        else:
            places = list(dict.fromkeys(x for points in lines.values() for x in points))
            width = 0.8 / len(lines)
            for number, (label, points) in enumerate(lines.items()):
                xs = [places.index(x) + number * width for x in points]
                axes.bar(xs, list(points.values()), width, label=label)
            axes.set_xticks([place + 0.4 - width / 2 for place in range(len(places))], places)
        axes.set_title(f"{_heading(experiment.name)}: {experiment.title}", fontsize=10)
        axes.set_xlabel(experiment.x_label)
        axes.set_ylabel(experiment.y_label)
        axes.set_ylim(bottom=0)
        axes.legend(loc="best", fontsize=8)

    return write_figure(experiment.name, draw, directory)


def _heading(name: str) -> str:
    return f"Table {name.removeprefix('table-')}" if name.startswith("table-") else f"Figure {name}"
