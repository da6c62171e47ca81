"""`spillway figure NAME`: reruns an experiment of the literature and draws it in the same axes."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.output import print_json, say, show_table

LIST = "list"


def figure(
    name: Annotated[str, typer.Argument(help="The number of the figure, such as 6.5; `list` shows all.")],
    out: Annotated[Path, typer.Option(help="The directory for the drawing.")] = Path("figures"),
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Runs with different data, for figures 7.13 to 7.17; default 5, with --quick 1."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and epochs: under a minute.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the metrics as one JSON object.")] = False,
) -> None:
    """Run an experiment on the real engine and draw it as the literature does."""
    from spillway.lab.paper import FIGURES, Reproduction, reproduce  # imports Spark

    if name == LIST:
        if json:
            print_json({"figures": [asdict(known) for known in FIGURES.values()]})
        else:
            show_table(
                ("figure", "section", "shows", "expected"),
                [(known.name, known.section, known.shows, known.expected) for known in FIGURES.values()],
            )
        return
    metrics = reproduce(Reproduction(name, out, seeds, quick, say))
    if json:
        print_json(metrics)
    else:
        say(f"the drawing is {metrics['drawing']}")
