"""A compute figure in the axes of the seed: relations, query or group size across, seconds up."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.errors import JobError
from spillway.figure.compute_experiment import ComputeExperiment
from spillway.figure.drawing import MARKS
from spillway.report.svg import svg

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

    path = directory / f"figure-{experiment.name}.svg"
    text = svg(f"figure-{experiment.name.replace('.', '-')}", draw, size_inches=(7.0, 4.6))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JobError(f"figure {path} cannot be written: {error.strerror}") from None
    return path
