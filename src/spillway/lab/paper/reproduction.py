"""Draws a figure of the literature again: runs its experiment, compares the runs, draws. One function per
family."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.job import SPARK_DEFAULTS, read_costs
from spillway.lab.paper.catalogue import EXPERIMENTS, find_experiment
from spillway.lab.paper.comparison import compare, lines
from spillway.lab.paper.compute import COMPUTE_FIGURES, compute_experiment
from spillway.lab.paper.compute_run import run_compute_experiment
from spillway.lab.paper.drawing import draw_compute_figure, draw_figure, draw_maintain_figure
from spillway.lab.paper.maintain import MAINTAIN_FIGURES, maintain_experiment
from spillway.lab.paper.maintain_run import run_maintain_figure
from spillway.lab.paper.registry import FIGURES
from spillway.lab.paper.run import run_experiment
from spillway.lab.paper.tree import SEEDS, TREE_EXPERIMENTS, compare_strategies, tree_experiment, tree_lines
from spillway.lab.paper.tree_run import run_tree_experiment
from spillway.spark.session import Session
from spillway.workload import count_results

Metrics = dict[str, Any]
SCRATCH = "spillway-figure-"


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A request to draw a figure."""

    name: str
    out: Path
    """The directory for the drawing."""
    seeds: int | None
    """Runs with different data, for trees; None: the default."""
    quick: bool
    note: Callable[[str], None]


def reproduce(asked: Reproduction) -> Metrics:
    """Draw the figure; returns its metrics, with the path of the drawing as `drawing`."""
    for names, family in _FAMILIES:
        if asked.name in names:
            return family(asked)
    raise JobError(f"there is no figure {asked.name}; known figures: {', '.join(FIGURES)}")


def _of_runs(asked: Reproduction) -> Metrics:
    chosen = find_experiment(asked.name, quick=asked.quick)
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as scratch, Session() as session:
        outcomes = run_experiment(session, chosen, Path(scratch), asked.note)
    metrics = compare(chosen, outcomes, count_results(chosen.workload(), chosen.rows))
    metrics["drawing"] = str(draw_figure(chosen, outcomes, asked.out))
    return _told(asked, metrics, lines(metrics))


def _of_trees(asked: Reproduction) -> Metrics:
    chosen = tree_experiment(asked.name, quick=asked.quick)
    seeds = asked.seeds or (1 if asked.quick else SEEDS)
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as scratch, Session() as session:
        by_seed, expected = run_tree_experiment(session, chosen, seeds, Path(scratch), asked.note)
    metrics = compare_strategies(chosen, by_seed, expected)
    metrics["drawing"] = str(draw_figure(chosen, by_seed[0], asked.out))
    return _told(asked, metrics, tree_lines(metrics))


def _of_compute(asked: Reproduction) -> Metrics:
    chosen = compute_experiment(asked.name, quick=asked.quick)
    with Session(settings=SPARK_DEFAULTS) as session:
        metrics = run_compute_experiment(session.spark, chosen, read_costs(), asked.note)
    metrics["drawing"] = str(draw_compute_figure(chosen, metrics, asked.out))
    return metrics


def _of_maintenance(asked: Reproduction) -> Metrics:
    chosen = maintain_experiment(asked.name)
    metrics = run_maintain_figure(chosen, quick=asked.quick, note=asked.note)
    metrics["drawing"] = str(draw_maintain_figure(chosen, metrics, asked.out))
    shown = [
        f"{label}: " + ", ".join(f"{x}: {y:.4g}" for x, y in points.items())
        for label, points in metrics["lines"].items()
    ]
    return _told(asked, metrics, shown)


def _told(asked: Reproduction, metrics: Metrics, shown: list[str]) -> Metrics:
    for line in shown:
        asked.note(line)
    return metrics


_FAMILIES = (
    (COMPUTE_FIGURES, _of_compute),
    (EXPERIMENTS, _of_runs),
    (TREE_EXPERIMENTS, _of_trees),
    (MAINTAIN_FIGURES, _of_maintenance),
)
