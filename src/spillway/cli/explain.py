"""`spillway explain JOB.toml`: the plan of a view, without running it."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.compute import explain_compute
from spillway.cli.output import print_json
from spillway.cli.spark import spark_session
from spillway.cli.verbosity import Quiet, Verbose
from spillway.errors import JobError
from spillway.job import ignored_options, is_compute_job, read_job
from spillway.model import parse_ddl
from spillway.plan.explain import explain as explain_text
from spillway.plan.explain import explain_dict
from spillway.plan.rules import plan_view


def explain(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    svg: Annotated[Path | None, typer.Option(help="Draw the tree of a view to compute.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Show the plan of a view: key, stages and state columns, or the join tree of a view to compute."""
    if is_compute_job(job):
        explain_compute(job, svg, json=json)
        return
    if svg is not None:
        raise JobError("--svg draws the join tree of a job with [compute]; this job has [run]")
    parsed = read_job(job)
    processors, groups = parsed.run.processors, parsed.run.groups
    if all(source.schema is not None and source.event_time is None for source in parsed.sources.values()):
        for source in parsed.sources.values():
            ignored_options(source.format, source.options, f"[sources.{source.name}]")
        catalog = {name: parse_ddl(source.schema or "") for name, source in parsed.sources.items()}
        plan = plan_view(parsed.view, catalog)
    else:
        with spark_session(parsed.spark) as session:
            plan, _ = session.plan(parsed.view, parsed.sources, groups)
    if json:
        print_json(explain_dict(plan, processors=processors, groups=groups))
    else:
        typer.echo(explain_text(plan, processors=processors, groups=groups))
