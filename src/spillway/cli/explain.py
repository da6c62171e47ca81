"""`spillway explain JOB.toml`: the plan of a view, without running it, and without Spark where it can be."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.compute import explain_compute
from spillway.cli.output import print_json, print_text, say
from spillway.cli.spark import spark_session
from spillway.cli.verbosity import Quiet, Verbose
from spillway.errors import JobError

if TYPE_CHECKING:
    from spillway.job import Job
    from spillway.plan.rules import Plan
    from spillway.plan.typing import PlanTypes


def explain(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    svg: Annotated[Path | None, typer.Option(help="Draw the tree of a view to compute.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Show the plan of a view: key, stages and state columns, or the join tree of a view to compute."""
    from spillway.job import ignored_options, is_compute_job, read_job
    from spillway.plan.explain import explain as explain_text
    from spillway.plan.explain import explain_dict

    if is_compute_job(job):
        explain_compute(job, svg, json=json)
        return
    if svg is not None:
        raise JobError("--svg draws the join tree of a job with [compute]; this job has [run]")
    parsed = read_job(job)
    for source in parsed.sources.values():
        ignored_options(source.format, source.options, f"[sources.{source.name}]")
    plan, types = _planned(parsed, tell=not json)
    known: dict[str, Any] = {"key_types": types.keys, "column_types": types.columns()}
    processors, groups = parsed.run.processors, parsed.run.groups
    if json:
        print_json(explain_dict(plan, processors=processors, groups=groups, **known))
    else:
        print_text(explain_text(plan, processors=processors, groups=groups, **known))


def _planned(job: "Job", *, tell: bool) -> "tuple[Plan, PlanTypes]":
    """The plan; Spark is started only where it alone knows a type."""
    from spillway.catalog import plan_streams
    from spillway.plan.typing import NeedsSparkError
    from spillway.state.storage import Storage

    # A checkpoint elsewhere may need credentials that only the run has.
    checkpoint = job.run.checkpoint if Storage(job.run.checkpoint).is_local else None
    try:
        return plan_streams(job.view, job.sources, job.spark, checkpoint)
    except NeedsSparkError as reason:
        if tell:
            say(f"starting Spark: {reason}")
    with spark_session(job.spark) as session:
        plan, wire = session.plan(job.view, job.sources, job.run.groups, checkpoint)
    return plan, wire.types
