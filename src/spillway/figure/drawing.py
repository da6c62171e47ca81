"""A figure in the axes of the seeds: minutes of arrivals or the clock across, results or memory up.

What clean-up did during the run is drawn apart: its results as broken lines, and, where memory is drawn,
crosses where it brought state back.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spillway.figure.experiment import Axis, Experiment
from spillway.figure.figure_file import write_figure
from spillway.figure.outcome import Outcome, Points
from spillway.figure.tree_experiments import TreeExperiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = ("o", "s", "^", "D", "v")


def draw_figure(
    experiment: Experiment | TreeExperiment, outcomes: Sequence[Outcome], directory: Path
) -> Path:
    """Write `figure-NAME.svg`; returns where."""
    by_clock = experiment.axis is Axis.RESULTS_BY_CLOCK
    draws_memory = experiment.axis in (Axis.MEMORY, Axis.MEMORY_EACH)
    has_budget = any(one.variant.has_budget for one in outcomes)

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
            (f"{one.variant.label}-M{number + 1}", points)
            for one in outcomes
            for number, points in enumerate(one.memory_each)
        ]
    return [(one.variant.label, _points(axis, one)) for one in outcomes]


def _points(axis: Axis, one: Outcome) -> Points:
    if axis is Axis.RESULTS_BY_CLOCK:
        return one.results_by_clock
    return one.memory if axis is Axis.MEMORY else one.results


def _cleanups(axis: Axis, outcomes: Sequence[Outcome]) -> list[tuple[str, Points]]:
    """What clean-up did while input came; a run without any has no line."""
    if axis is Axis.RESULTS:
        return [
            (one.variant.label, one.early_cleanup if len(one.early_cleanup) > 1 else ()) for one in outcomes
        ]
    return [(one.variant.label, one.restored) for one in outcomes] if axis is Axis.MEMORY else []
