"""`spillway compute JOB.toml`: compute a view over stored relations with the best join tree."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.interruptible import InterruptError, interruptible
from spillway.cli.output import print_json, print_text, say
from spillway.cli.spark import spark_session
from spillway.cli.verbosity import Quiet, Verbose
from spillway.errors import ComputeError

if TYPE_CHECKING:
    from spillway.job import ComputeJob
    from spillway.spark.compute import Computation, Listener


def compute(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    svg: Annotated[Path | None, typer.Option(help="Also draw the tree with its measurements.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Compute the view of a job file over stored relations."""
    from spillway.cli.segment_bars import SegmentBars
    from spillway.compute import draw_text
    from spillway.job import read_compute_job

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
    from spillway.compute import draw_text
    from spillway.job import read_compute_job

    report = _planned(read_compute_job(job), tell=not json)
    if svg is not None:
        _draw(report, svg)
    if json:
        print_json(report)
    else:
        print_text(draw_text(report))


def _planned(job: "ComputeJob", *, tell: bool) -> dict[str, Any]:
    """The report of the plan; Spark is started only for relations that it alone can read."""
    from spillway.catalog.stored import plan_stored
    from spillway.job import SPARK_DEFAULTS, read_costs
    from spillway.plan.typing import NeedsSparkError

    try:
        return plan_stored(job.view, job.sources, job.compute, read_costs(), job.spark)
    except NeedsSparkError as reason:
        if tell:
            say(f"starting Spark: {reason}")
    with spark_session(SPARK_DEFAULTS | dict(job.spark)) as session:
        return _computation(session.spark, job, None).report()


def run_compute_job(job: "ComputeJob", listener: "Listener | None" = None) -> dict[str, Any]:
    from spillway.job import SPARK_DEFAULTS

    with spark_session(SPARK_DEFAULTS | dict(job.spark), shows=False) as session:
        computation = _computation(session.spark, job, listener)
        with interruptible(computation.cancel, "cancelling; nothing will be written") as asked:
            try:
                return computation.run(job.sink)
            except ComputeError as error:
                if asked.number is None:
                    raise
                raise InterruptError(asked.number, f"{error}; run the command again") from None


def _computation(spark: Any, job: "ComputeJob", listener: "Listener | None") -> "Computation":
    from spillway.job import read_costs
    from spillway.spark.compute import plan_computation

    return plan_computation(spark, job.view, job.sources, job.compute, units=read_costs(), listener=listener)


def _draw(report: dict[str, Any], path: Path) -> None:
    from spillway.report import draw_tree

    draw_tree(report, path)
    say(f"the drawing is {path}")
