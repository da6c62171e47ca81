"""A maintenance figure in the axes of the seed: lines where places are numbers, else bars."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.figure.drawing import MARKS
from spillway.figure.figure_file import write_figure
from spillway.figure.maintain_experiment import ESTIMATED, MaintainExperiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBERS = ("updates", "keys of the query", "join ratio", "changed sources", "ms per 64 bytes")


def draw_maintain_figure(experiment: MaintainExperiment, figures: dict[str, Any], directory: Path) -> Path:
    """Write `figure-NAME.svg`; returns where."""
    lines: dict[str, dict[str, float]] = figures["lines"]
    if experiment.name.startswith("table-"):  # seconds are in the table, relations in the drawing
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
