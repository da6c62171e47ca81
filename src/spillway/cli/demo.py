"""`spillway demo`: join stock prices, volumes and reviews with too little memory; takes about half a minute.

Writes the streams and a job file, runs the job while its memory, spills and moves are shown, compares the
results with DuckDB, and queries them as an analyst would. Most groups start on one of two processors, and the
budget holds less than half of the state, so the run has to move and to spill.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spillway.cli.output import print_json, say
from spillway.cli.run import end_if_interrupted, run_job
from spillway.cli.run_view import RunView, megabytes
from spillway.cli.verbosity import Quiet, Verbose
from spillway.errors import JobError, StateError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MARKER = "job.toml"


def demo(
    directory: Annotated[Path, typer.Option(help="Where the demo's data and results go.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="Rows per stream.", min=1000)] = 200_000,
    files: Annotated[int, typer.Option(help="Files per stream; one is read per epoch.", min=1)] = 25,
    memory: Annotated[str, typer.Option(help="Memory of one processor; 64MB needs no spill.")] = "5MB",
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Join stock prices, volumes and reviews with too little memory, and check the answer."""
    from spillway.job import read_job
    from spillway.report import write_report
    from spillway.workload import write_stock_streams

    _clear(directory)
    file, data, out, report = (directory / name for name in (_MARKER, "data", "out", "report.html"))
    file.write_text(_job_text(memory))
    job = read_job(file)
    say(f"writing three streams of {rows:,} rows to {data}")
    write_stock_streams(data, rows=rows, files=files, seed=7)
    say(f"joining them on 2 processors with {memory} each; 4 of 5 groups start on processor 0")
    view = RunView()
    summary = run_job(job, progress=view)
    written = {"job": str(file), "results_path": str(out)}
    if summary["interrupted"] is not None:
        if json:
            print_json(summary | written)
        end_if_interrupted(summary, f"spillway run {file}")
    write_report(str(directory / "state"), report)
    with _results(data, out) as database:
        count = _check(database)
        if json:
            print_json(summary | written | {"report": str(report), "duckdb_rows": count, "exact": True})
            return
        _show(database)
    say(f"exact: DuckDB computes the same {count:,} rows from {data}")
    say(f"within budget: no processor used more than {megabytes(view.totals.peak_bytes)} of its {memory}")
    say(f"report: {report}")
    say(f"results: {out} (Delta); job file: {file}")


def _clear(directory: Path) -> None:
    if directory.exists() and any(directory.iterdir()):
        if not (directory / _MARKER).exists():
            raise JobError(f"{directory} is not empty and not a demo; choose another with --directory")
        shutil.rmtree(directory)
    directory.mkdir(parents=True, exist_ok=True)


def _job_text(memory: str) -> str:
    from spillway.workload import STOCK_SCHEMAS_SQL, STOCK_VIEW_SQL

    sources = "\n".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "data/{name}"\nschema = "{schema}"\n'
        'options = { maxFilesPerTrigger = "1" }   # one file per epoch\n'
        for name, schema in STOCK_SCHEMAS_SQL.items()
    )
    return f'''\
[view]
sql = """
{STOCK_VIEW_SQL}"""

{sources}
[run]
checkpoint = "state"
processors = 2
memory = "{memory}"               # of one processor; the state needs more
distribution = [0.8, 0.2]    # most groups start on processor 0
adapt = "lazy-disk"          # move groups while there is room elsewhere, spill when there is none

[run.policy]
minimum_span_seconds = 2     # between two moves

[sink]
format = "delta"
path = "out"
'''


def _results(data: Path, out: Path) -> "DuckDBPyConnection":
    """A database with the input streams, and with the results as the table `results`."""
    import duckdb
    from deltalake import DeltaTable

    from spillway.workload import STOCK_SCHEMAS_SQL

    database = duckdb.connect()
    for name in STOCK_SCHEMAS_SQL:
        database.read_parquet(str(data / name / "*.parquet")).create_view(name)
    written = DeltaTable(out).to_pyarrow_table()  # noqa: F841 - DuckDB finds it by name
    database.execute("CREATE TABLE results AS FROM written")
    return database


def _check(database: "DuckDBPyConnection") -> int:
    """The number of results; they are compared with DuckDB's answer as multisets."""
    from spillway.workload import STOCK_VIEW_SQL

    database.execute(f"CREATE TABLE expected AS {STOCK_VIEW_SQL}")
    missing, surplus = (
        database.sql(f"SELECT count(*) FROM (FROM {left} EXCEPT ALL FROM {right})").fetchall()[0][0]
        for left, right in (("expected", "results"), ("results", "expected"))
    )
    if missing or surplus:
        raise StateError(
            f"the results differ from DuckDB's: {missing:,} rows are missing and {surplus:,} are too many; "
            "please report this with the demo's directory"
        )
    return int(database.table("results").shape[0])


def _show(database: "DuckDBPyConnection") -> None:
    from rich.console import Console
    from rich.table import Table

    from spillway.workload import STOCK_QUERY_SQL

    answer = database.sql(STOCK_QUERY_SQL)
    table = Table(title="Well-reviewed stocks by upside to the analysts' targets")
    for name in answer.columns:
        table.add_column(name.replace("_", " "), justify="left" if name == "symbol" else "right")
    for row in answer.fetchall():
        table.add_row(*(str(value) for value in row))
    Console().print(table)
