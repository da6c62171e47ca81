"""A compute figure in the axes of the seed: relations, query or group size across, seconds up."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.figure.compute_experiment import ComputeExperiment
from spillway.figure.drawing import MARKS
from spillway.figure.figure_file import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_compute_figure(experiment: ComputeExperiment, figures: dict[str, Any], directory: Path) -> Path:
    """Write `figure-NAME.svg`; returns where."""

    def draw(axes: "Axes") -> None:
        for number, (label, points) in enumerate(figures["seconds"].items()):
            axes.plot(list(points), list(points.values()), label=label, marker=MARKS[number % len(MARKS)])
        axes.set_title(f"Figure {experiment.name}: {experiment.title}")
        axes.set_xlabel(experiment.x_label)
        axes.set_ylabel("processing time (s)")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower right")

    return write_figure(experiment.name, draw, directory)
