"""`spillway demo`: join stock prices, volumes and reviews in near real time; takes about a minute.

Writes the streams and a job file, runs the job, and queries the results as an analyst would.
"""

import shutil
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from rich.console import Console
from rich.table import Table

from spillway.cli.output import print_json, say
from spillway.cli.run import describe, end_if_interrupted, run_job
from spillway.cli.verbosity import Quiet, Verbose
from spillway.errors import JobError
from spillway.job import read_job
from spillway.workload import STOCK_QUERY_SQL, STOCK_SCHEMAS_SQL, STOCK_VIEW_SQL, write_stock_streams

_MARKER = "job.toml"


def demo(
    directory: Annotated[Path, typer.Option(help="Where the demo's data and results go.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="Rows per stream.", min=1000)] = 200_000,
    files: Annotated[int, typer.Option(help="Files per stream; one is read per epoch.", min=1)] = 25,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Join stock prices, volumes and reviews for an analyst."""
    _clear(directory)
    say(f"writing three streams of {rows:,} rows to {directory}/data")
    write_stock_streams(directory / "data", rows=rows, files=files, seed=7)
    job = directory / _MARKER
    job.write_text(_job_text())
    say(f"running {job}")
    summary = run_job(read_job(job))
    if json:
        print_json(summary | {"job": str(job), "results_path": str(directory / "out")})
    end_if_interrupted(summary, f"spillway run {job}")
    answer = _ask(directory / "out")
    if json:
        return
    say(describe(summary))
    _show(answer)
    say(f"the results are a Delta table in {directory / 'out'}; the job file is {job}")
    say(f"the journal of every epoch is {directory / 'state' / 'journal.jsonl'}")


def _clear(directory: Path) -> None:
    if directory.exists() and any(directory.iterdir()):
        if not (directory / _MARKER).exists():
            raise JobError(f"{directory} is not empty and not a demo; choose another with --directory")
        shutil.rmtree(directory)
    directory.mkdir(parents=True, exist_ok=True)


def _job_text() -> str:
    sources = "\n".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "data/{name}"\nschema = "{schema}"\n'
        'options = { maxFilesPerTrigger = "1" }\n'
        for name, schema in STOCK_SCHEMAS_SQL.items()
    )
    return (
        f'[view]\nsql = """\n{STOCK_VIEW_SQL}"""\n\n{sources}\n'
        '[run]\nprocessors = 2\ncheckpoint = "state"\nuntil = "exhausted"\n\n'
        '[sink]\nformat = "delta"\npath = "out"\n'
    )


def _ask(out: Path) -> duckdb.DuckDBPyRelation:
    from deltalake import DeltaTable

    results = DeltaTable(out).to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.register("results", results)
    return connection.sql(STOCK_QUERY_SQL)


def _show(answer: duckdb.DuckDBPyRelation) -> None:
    table = Table(title="Well-reviewed stocks by upside to the analysts' targets")
    for name in answer.columns:
        table.add_column(name.replace("_", " "), justify="left" if name == "symbol" else "right")
    for row in answer.fetchall():
        table.add_row(*(str(value) for value in row))
    Console().print(table)
