"""`spillway cleanup JOB.toml`: produce the missing results of a stopped job, without new input."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.run import run_job, show
from spillway.cli.verbosity import Quiet, Verbose


def cleanup(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Drain pending input and produce all missing results."""
    from spillway.job import read_job

    parsed = read_job(job)
    show(run_job(parsed, cleanup_only=True), parsed, f"spillway cleanup {job}", json=json)
