"""`spillway report CHECKPOINT`: a run as one HTML page with plots, made from its journal."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.output import print_json, say


def report(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint directory of a job.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    json: Annotated[bool, typer.Option("--json", help="Print the totals as one JSON object.")] = False,
) -> None:
    """Write a page with plots of throughput, memory, spills, results and productivity."""
    from spillway.report import write_report

    totals = write_report(checkpoint, out)
    if json:
        print_json(totals)
    else:
        say(f"{totals['epochs']} epochs, {totals['spills']} spills; the page is {out}")
