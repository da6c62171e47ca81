"""`spillway compute JOB.toml`: compute a view over stored relations with the best join tree."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.interruptible import InterruptError, interruptible
from spillway.cli.output import print_json, say
from spillway.cli.segment_bars import SegmentBars
from spillway.cli.spark import spark_session
from spillway.cli.verbosity import Quiet, Verbose
from spillway.compute import draw_text
from spillway.errors import ComputeError
from spillway.job import SPARK_DEFAULTS, ComputeJob, read_compute_job, read_costs

if TYPE_CHECKING:
    from spillway.spark.compute import Computation, Listener


def compute(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    svg: Annotated[Path | None, typer.Option(help="Also draw the tree with its measurements.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Compute the view of a job file over stored relations."""
    parsed = read_compute_job(job)
    with SegmentBars() as bars:
        summary = run_compute_job(parsed, bars.event)
    if svg is not None:
        _draw(summary, svg)
    if json:
        print_json(summary)
        return
    say(draw_text(summary))
    say(f"{summary['rows']:,} rows in {summary['seconds']:.2f} s; statistics took "
        f"{summary['statistics_seconds']:.2f} s, planning {summary['planning_seconds']:.3f} s")  # fmt: skip
    if parsed.sink.path is not None:
        say(f"result: {parsed.sink.path} ({parsed.sink.format})")


def explain_compute(job: Path, svg: Path | None, *, json: bool) -> None:
    """Show the tree without running it; only statistics are collected."""
    parsed = read_compute_job(job)
    with spark_session(SPARK_DEFAULTS | dict(parsed.spark)) as session:
        report = _computation(session.spark, parsed, None).report()
    if svg is not None:
        _draw(report, svg)
    if json:
        print_json(report)
    else:
        typer.echo(draw_text(report))


def run_compute_job(job: ComputeJob, listener: "Listener | None" = None) -> dict[str, Any]:
    with spark_session(SPARK_DEFAULTS | dict(job.spark), shows=False) as session:
        computation = _computation(session.spark, job, listener)
        with interruptible(computation.cancel, "cancelling; nothing will be written") as asked:
            try:
                return computation.run(job.sink)
            except ComputeError as error:
                if asked.number is None:
                    raise
                raise InterruptError(asked.number, f"{error}; run the command again") from None


def _computation(spark: Any, job: ComputeJob, listener: "Listener | None") -> "Computation":
    from spillway.spark.compute import plan_computation

    return plan_computation(spark, job.view, job.sources, job.compute, units=read_costs(), listener=listener)


def _draw(report: dict[str, Any], path: Path) -> None:
    from spillway.report import draw_tree

    draw_tree(report, path)
    say(f"the drawing is {path}")
