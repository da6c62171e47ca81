"""The application: its commands, and the one place where errors become a line and an exit code."""

import sys
from typing import Annotated, Any

import typer

from spillway import __version__
from spillway.cli.bench import bench
from spillway.cli.calibrate import calibrate
from spillway.cli.cleanup import cleanup
from spillway.cli.compute import compute
from spillway.cli.demo import demo
from spillway.cli.explain import explain
from spillway.cli.figure import figure
from spillway.cli.interruptible import supervise
from spillway.cli.job import job
from spillway.cli.maintain import maintain
from spillway.cli.output import print_json, say
from spillway.cli.report import report
from spillway.cli.run import run
from spillway.errors import SpillwayError

FAILED = 1
UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""Typer has a copy of click, and exports only the errors that commands raise themselves."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Exact, incremental answers to integration views on Spark, inside a memory budget.",
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"spillway {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_tell_version),
    ] = False,
) -> None:
    pass


app.command()(run)
app.command()(explain)
app.command()(demo)
app.command()(cleanup)
app.command()(compute)
app.command()(calibrate)
app.command()(report)
app.command()(figure)
app.command()(maintain)
app.add_typer(job, name="job")
app.add_typer(bench, name="bench")


def command() -> None:
    """Run the command line; an error becomes one line and an exit code."""
    try:
        sys.exit(app(standalone_mode=False))
    except UsageError as error:
        error.show()
        _answer(error.format_message(), "UsageError")
        sys.exit(error.exit_code)
    except SpillwayError as error:
        message = " ".join(str(error).split())
        say(f"error: {message}")
        _answer(message, type(error).__name__)
        sys.exit(FAILED)


def _answer(message: str, kind: str) -> None:
    if "--json" in sys.argv:
        print_json({"error": message, "kind": kind})


def main() -> None:
    """Run the command line inside a process that continues afterwards."""
    sys.exit(supervise(command))
