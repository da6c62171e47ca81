"""`spillway run JOB.toml`: run a view until its input is exhausted, or forever."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.interruptible import exit_code_of, interruptible
from spillway.cli.output import ProgressLine, complain, print_json, say
from spillway.cli.spark import spark_session
from spillway.cli.verbosity import Quiet, Verbose

if TYPE_CHECKING:
    from spillway.cli.run_view import RunView
    from spillway.job import Job


LEFT_OUT = {
    "late_rows": "they came later than the lateness of their source allows, and were not joined",
    "null_time_rows": "they have no event time, so they give no results",
    "malformed_rows": "records of this run that do not fit the schema of their source",
}
"""What is said of rows that are not in the results; totals of all runs, but for malformed ones."""


def run(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Run the view of a job file."""
    from spillway.job import read_job

    parsed = read_job(job)
    show(run_job(parsed), parsed, f"spillway run {job}", json=json)


def show(summary: dict[str, Any], job: "Job", again: str, *, json: bool) -> None:
    """Report how a run ended; an early interrupt ends the command with the exit code of the signal."""
    if json:
        print_json(summary)
    else:
        say(describe(summary))
    end_if_interrupted(summary, again)
    if summary["missing"]:
        complain(f"missing: {'; '.join(summary['missing'])}; spillway run reads it")
    for key, what in LEFT_OUT.items():
        if summary[key]:
            say(f"{key}: {summary[key]:,} ({what})")
    if not json and job.sink.path is not None:
        say(f"results: {job.sink.path} ({job.sink.format})")


def end_if_interrupted(summary: dict[str, Any], again: str) -> None:
    """Leave the command if a signal left results missing; say which, and how to continue."""
    if summary["interrupted"] is None:
        return
    complain(
        f"interrupted by {summary['interrupted']}: the results are incomplete; missing: "
        f"{'; '.join(summary['missing'])}. To continue: {again}"
    )
    raise typer.Exit(exit_code_of(summary["interrupted"]))


def run_job(
    job: "Job", *, cleanup_only: bool = False, progress: "ProgressLine | RunView | None" = None
) -> dict[str, Any]:
    """Run a job to its end, with progress; an interrupt stops it after the current epoch."""
    with progress or ProgressLine() as line, spark_session(job.spark, shows=False) as session:
        start = session.cleanup_job if cleanup_only else session.run_job
        query = start(job, listener=line.epoch)
        if job.run.memory_bytes is not None and not query.budget_is_hard:
            say("note: no tmpfs with enough room on this host, so the memory budget is not hard")
        with interruptible(query.request_stop, "stopping after the current epoch") as asked:
            query.awaitTermination()
        summary = query.summary()
        if asked.name is not None and summary["complete"]:
            all_of = "the view" if job.run.until == "exhausted" or cleanup_only else "the input that was read"
            say(f"stopped by {asked.name}; all results of {all_of} are there")
        return summary | {"interrupted": None if summary["complete"] else asked.name}


def describe(summary: dict[str, Any]) -> str:
    """What this run did, and the totals of the job if earlier runs did some of it."""
    rows, results, epochs = summary["run_input_rows"], summary["run_results"], summary["run_epochs"]
    total = (
        f"{summary['input_rows']:,} rows in, {summary['results_runtime'] + summary['results_cleanup']:,} "
        f"results in {summary['epochs']:,} epochs"
    )
    if not epochs:
        state = "the job is complete" if summary["complete"] else "no epoch was run"
        return f"{state}; total of its runs: {total}"
    rate = rows / max(summary["seconds"], 1e-9)
    told = (
        f"{rows:,} rows in, {results:,} results in {epochs:,} epochs and {summary['seconds']:.1f} s "
        f"({rate:,.0f} rows/s)"
    )
    if summary["resident_bytes_peak"]:
        peak = ", ".join(f"{size / 1e6:.1f}" for size in summary["resident_bytes_peak"])
        told += f"; peak state memory per processor: {peak} MB"
    return told if epochs == summary["epochs"] else f"{told}; total with earlier runs: {total}"
