"""`spillway calibrate`: measure on this machine what a row costs in each phase of a hash join."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.output import print_json, say
from spillway.cli.spark import spark_session


def calibrate(
    rows: Annotated[int, typer.Option(help="Rows of the large relation.", min=10_000)] = 400_000,
    out: Annotated[Path | None, typer.Option(help="A file to use instead of the user's cache.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the costs as one JSON object.")] = False,
) -> None:
    """Measure the unit costs by which join trees are chosen, and store them."""
    from spillway.job import SPARK_DEFAULTS, write_costs

    with spark_session(SPARK_DEFAULTS) as session:
        from spillway.spark.compute import measure_costs

        costs = measure_costs(session.spark, rows, say)
    path = write_costs(costs, out)
    if json:
        print_json({**costs.to_json(), "path": str(path)})
        return
    for name, value in costs.to_json().items():
        typer.echo(f"{name}: {value:.3g}")
    say(f"stored in {path}")
