"""`spillway figure NAME`: reruns an experiment of the literature and draws it in the same axes."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from spillway.cli.output import print_json, say
from spillway.job import SPARK_DEFAULTS
from spillway.lab.paper import (
    COMPUTE_FIGURES,
    FIGURES,
    MAINTAIN_FIGURES,
    SEEDS,
    TREE_EXPERIMENTS,
    compare,
    compare_strategies,
    compute_experiment,
    draw_compute_figure,
    draw_figure,
    draw_maintain_figure,
    find_experiment,
    lines,
    maintain_experiment,
    tree_experiment,
    tree_lines,
)
from spillway.spark.compute import read_costs
from spillway.workload import count_results


def figure(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(FIGURES)}.")],
    out: Annotated[Path, typer.Option(help="The directory for the drawing.")] = Path("figures"),
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help=f"Runs with different data, of figures 7.13 to 7.17: {SEEDS}, quick 1."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and epochs: under a minute.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
) -> None:
    """Run an experiment on the real engine and draw it as the literature does."""
    if name in COMPUTE_FIGURES:
        _compute_figure(name, out, quick=quick, json=json)
        return
    if name in TREE_EXPERIMENTS:
        _tree_figure(name, out, seeds or (1 if quick else SEEDS), quick=quick, json=json)
        return
    if name in MAINTAIN_FIGURES:
        _maintain_figure(name, out, quick=quick, json=json)
        return
    chosen = find_experiment(name, quick=quick)
    from spillway.lab.paper import run_experiment
    from spillway.spark.session import Session

    with tempfile.TemporaryDirectory(prefix="spillway-figure-") as scratch, Session() as session:
        outcomes = run_experiment(session, chosen, Path(scratch), say)
    figures = compare(chosen, outcomes, count_results(chosen.workload(), chosen.rows))
    figures["drawing"] = str(draw_figure(chosen, outcomes, out))
    for line in lines(figures):
        say(line)
    _show(figures, json=json)


def _tree_figure(name: str, out: Path, seeds: int, *, quick: bool, json: bool) -> None:
    chosen = tree_experiment(name, quick=quick)
    from spillway.lab.paper import run_tree_experiment
    from spillway.spark.session import Session

    with tempfile.TemporaryDirectory(prefix="spillway-figure-") as scratch, Session() as session:
        by_seed, expected = run_tree_experiment(session, chosen, seeds, Path(scratch), say)
    figures = compare_strategies(chosen, by_seed, expected)
    figures["drawing"] = str(draw_figure(chosen, by_seed[0], out))
    for line in tree_lines(figures):
        say(line)
    _show(figures, json=json)


def _compute_figure(name: str, out: Path, *, quick: bool, json: bool) -> None:
    chosen = compute_experiment(name, quick=quick)
    from spillway.lab.paper import run_compute_experiment
    from spillway.spark.session import Session

    with Session(settings=SPARK_DEFAULTS) as session:
        figures = run_compute_experiment(session.spark, chosen, read_costs(), say)
    figures["drawing"] = str(draw_compute_figure(chosen, figures, out))
    _show(figures, json=json)


def _maintain_figure(name: str, out: Path, *, quick: bool, json: bool) -> None:
    chosen = maintain_experiment(name)
    from spillway.lab.paper import run_maintain_figure

    figures = run_maintain_figure(chosen, quick=quick, note=say)
    figures["drawing"] = str(draw_maintain_figure(chosen, figures, out))
    for label, points in figures["lines"].items():
        say(f"{label}: " + ", ".join(f"{x}: {y:.4g}" for x, y in points.items()))
    _show(figures, json=json)


def _show(figures: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(figures)
    else:
        say(f"the drawing is {figures['drawing']}")
