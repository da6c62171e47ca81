"""`spillway job`: check a job file, or print the reference and the JSON Schema of job files."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.output import print_json, print_text, say

job = typer.Typer(no_args_is_help=True, help="Check a job file; print the reference and the JSON Schema.")


@job.command()
def check(
    file: Annotated[Path, typer.Argument(help="The job file.")],
    json: Annotated[bool, typer.Option("--json", help="Print the answer as one JSON object.")] = False,
) -> None:
    """Check a job file without starting anything: tables, keys, values and variables."""
    from spillway.job import read_document

    document = read_document(file)
    document.check()
    if json:
        print_json({"job": str(file), "valid": True, "commands": document.commands})
    else:
        commands = " and ".join(f"spillway {name}" for name in document.commands)
        say(f"{file}: keys and values are right, for {commands}; spillway explain checks view and sources")


@job.command()
def schema(
    json: Annotated[bool, typer.Option("--json", help="Print the schema on one line.")] = False,
) -> None:
    """Print the JSON Schema of job files, with which editors complete and check keys."""
    from json import dumps

    from spillway.job import job_schema

    if json:
        print_json(job_schema())
    else:
        print_text(dumps(job_schema(), indent=2))


@job.command()
def reference(
    json: Annotated[bool, typer.Option("--json", help="Print the keys as one JSON object.")] = False,
) -> None:
    """Print the reference of all tables and keys, as Markdown."""
    from spillway.job import reference_document, reference_markdown

    if json:
        print_json(reference_document())
    else:
        print_text(reference_markdown().rstrip())
