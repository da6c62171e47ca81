"""A figure in the axes of the seeds: minutes of arrivals across, results or memory up."""

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
    draws_memory = experiment.axis is not Axis.RESULTS
    has_budget = any(one.variant.has_budget for one in outcomes)

    def draw(axes: "Axes") -> None:
        scale = 1e6 if draws_memory else 1e3
        for number, (label, points) in enumerate(_lines(experiment.axis, outcomes)):
            axes.plot(
                [minutes for minutes, _ in points],
                [value / scale for _, value in points],
                label=label,
                marker=MARKS[number % len(MARKS)],
                markersize=3,
                linewidth=1.2,
            )
        axes.set_title(f"Figure {experiment.name}: {experiment.title}")
        axes.set_xlabel(f"minutes of arrivals (one row per {experiment.row_seconds * 1000:g} ms and stream)")
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
    return [(one.variant.label, one.memory if axis is Axis.MEMORY else one.results) for one in outcomes]
