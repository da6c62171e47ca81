"""The options `--quiet` and `--verbose`, which commands that run something share."""

from typing import Annotated

import typer

from spillway.cli.output import Verbosity, is_quiet, is_verbose, set_verbosity


def _be(verbosity: Verbosity) -> None:
    if is_quiet() or is_verbose():
        raise typer.BadParameter("--quiet and --verbose exclude each other; give one of them")
    set_verbosity(verbosity)


def _be_quiet(asked: bool) -> None:
    if asked:
        _be(Verbosity.QUIET)


def _be_verbose(asked: bool) -> None:
    if asked:
        _be(Verbosity.VERBOSE)


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Show only errors and results.", callback=_be_quiet),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also show what Spark says, and stack traces.", callback=_be_verbose
    ),
]
