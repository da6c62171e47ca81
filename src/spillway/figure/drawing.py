"""A figure in the axes of the seeds: minutes of arrivals across, results or memory up."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spillway.errors import JobError
from spillway.figure.experiment import Experiment
from spillway.figure.outcome import Outcome
from spillway.report.svg import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = ("o", "s", "^", "D", "v")


def draw_figure(experiment: Experiment, outcomes: Sequence[Outcome], directory: Path) -> Path:
    """Write `figure-NAME.svg`; returns where."""

    def draw(axes: "Axes") -> None:
        for number, one in enumerate(outcomes):
            points = one.memory if experiment.draws_memory else one.results
            scale = 1e6 if experiment.draws_memory else 1e3
            axes.plot(
                [minutes for minutes, _ in points],
                [value / scale for _, value in points],
                label=one.variant.label,
                marker=MARKS[number % len(MARKS)],
                markersize=3,
                linewidth=1.2,
            )
        axes.set_title(f"Figure {experiment.name}: {experiment.title}")
        axes.set_xlabel("minutes of arrivals (one row per 30 ms and stream)")
        axes.set_ylabel("memory (MB)" if experiment.draws_memory else "results (thousands)")
        if experiment.draws_memory:
            axes.axhline(experiment.memory_bytes / 1e6, color="#a02020", linewidth=1, label="budget")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.legend(loc="lower right" if experiment.draws_memory else "upper left")

    path = directory / f"figure-{experiment.name}.svg"
    text = svg(f"figure-{experiment.name.replace('.', '-')}", draw, size_inches=(7.0, 4.6))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JobError(f"figure {path} cannot be written: {error.strerror}") from None
    return path
