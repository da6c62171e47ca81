"""The application: its commands, and the one place where errors become a line and an exit code."""

import sys
import traceback
from typing import Annotated, Any, NoReturn

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
from spillway.cli.output import Verbosity, complain, is_verbose, print_json, set_verbosity
from spillway.cli.report import report
from spillway.cli.run import run
from spillway.detail_log import log_of
from spillway.errors import SpillwayError, disk_reason

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
    set_verbosity(Verbosity.NORMAL)


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
        _fail(error, str(error))
    except OSError as error:
        reason = disk_reason(str(error))
        if reason is None:
            raise
        _fail(error, f"cannot write {error.filename or 'a file'}: {reason}")


def _fail(error: Exception, text: str) -> NoReturn:
    message, log = " ".join(text.split()), log_of(error)
    if is_verbose():
        complain("".join(traceback.format_exception(error)))
    complain(f"error: {message}" + (f" (details: {log})" if log else ""))
    _answer(message, type(error).__name__, log)
    sys.exit(FAILED)


def _answer(message: str, kind: str, log: str | None = None) -> None:
    if "--json" in sys.argv:
        print_json({"error": message, "kind": kind} | ({"log": log} if log else {}))


def main() -> None:
    """Run the command line inside a process that continues afterwards."""
    sys.exit(supervise(command))
