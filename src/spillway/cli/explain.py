"""`spillway explain JOB.toml`: the plan of a view, without running it."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.compute import explain_compute
from spillway.cli.output import print_json, print_text
from spillway.errors import JobError


def explain(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    svg: Annotated[Path | None, typer.Option(help="Draw the tree of a view to compute.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as one JSON object.")] = False,
) -> None:
    """Show the plan of a view: key, stages and state columns, or the join tree of a view to compute."""
    from spillway.job import is_compute_job, read_job
    from spillway.model import parse_ddl
    from spillway.plan.explain import explain as explain_text
    from spillway.plan.explain import explain_dict
    from spillway.plan.rules import plan_view

    if is_compute_job(job):
        explain_compute(job, svg, json=json)
        return
    if svg is not None:
        raise JobError("--svg draws the join tree of a job with [compute]; this job has [run]")
    parsed = read_job(job)
    processors, groups = parsed.run.processors, parsed.run.groups
    if all(source.schema is not None and source.event_time is None for source in parsed.sources.values()):
        catalog = {name: parse_ddl(source.schema or "") for name, source in parsed.sources.items()}
        plan = plan_view(parsed.view, catalog)
    else:
        from spillway.spark.session import Session

        with Session(settings=parsed.spark) as session:
            plan, _ = session.plan(parsed.view, parsed.sources, groups)
    if json:
        print_json(explain_dict(plan, processors=processors, groups=groups))
    else:
        print_text(explain_text(plan, processors=processors, groups=groups))
