"""`spillway maintain JOB.toml`: keep a stored view equal to its definition while its sources change."""

import threading
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.interruptible import Asked, interruptible
from spillway.cli.output import complain, print_json, print_text, say
from spillway.cli.spark import spark_session
from spillway.cli.verbosity import Quiet, Verbose
from spillway.errors import JobError, SpillwayError, StateError

if TYPE_CHECKING:
    from spillway.maintain import Backend, MaintainJob, Maintenance, RoundReport

VERIFY_HELP = "Recompute the view as of its last round and compare; also count the changes since then."


def maintain(
    job: Annotated[Path, typer.Argument(help="The job file.")],
    verify: Annotated[bool, typer.Option("--verify", help=VERIFY_HELP)] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show the plan for a number of updates per source without running it."
        ),
    ] = False,
    updates: Annotated[
        int, typer.Option(help="With --explain: the number of updates of each source.", min=0)
    ] = 100,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Stop recording changes for this view in the sources; run nothing."),
    ] = False,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Load the view again first; the old result stays until that is done."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,  # noqa: ARG001 - options set how much is shown
    verbose: Verbose = False,  # noqa: ARG001
) -> None:
    """Maintain a stored view over databases that keep changing: one round, or continuously."""
    if sum([verify, explain, forget, reload]) > 1:
        raise JobError("--verify, --explain, --forget and --reload exclude each other; give one of them")
    from spillway.job import read_maintain_job
    from spillway.maintain import open_maintenance

    parsed = read_maintain_job(job)
    with ExitStack() as stack:
        if forget and not parsed.store.exists():
            stack.callback(_remove, parsed.store)
        backend = _backend(parsed, stack)
        if explain:
            _explain(parsed, backend, updates, json)
            return
        maintenance = stack.enter_context(open_maintenance(parsed, backend, replace=forget or reload))
        if forget:
            _forget(maintenance, parsed, json)
        elif verify:
            _verify(maintenance, json)
        else:
            if reload:
                maintenance.manager.reload()
            maintenance.manager.start()
            _run(maintenance, parsed, reload, json)


def _remove(store: Path) -> None:
    if store.exists():  # below a file there is nothing, and unlink would fail
        store.unlink()


def _backend(job: "MaintainJob", stack: ExitStack) -> "Backend":
    """What maintains the view; if the job needs a Spark session, `stack` ends it."""
    from spillway.maintain import AlgebraBySize, Backend

    if not job.needs_spark:
        return Backend()
    log = job.store.with_name(job.store.name + ".log")
    spark = stack.enter_context(spark_session(job.spark or {}, log=log)).spark
    from spillway.spark.maintain import ComputeLoad, SparkAlgebra, SparkServer

    algebra = AlgebraBySize(SparkAlgebra(spark), job.spark_rows)
    load = ComputeLoad(spark, job.spark_rows)
    return Backend(lambda spec: SparkServer(spark, spec.place), algebra, load)


def _forget(maintenance: "Maintenance", job: "MaintainJob", json: bool) -> None:
    others = maintenance.manager.forget()
    if json:
        print_json({"forgotten": True, "store": str(job.store), "other_stores": others})
        return
    say(f"the sources no longer record changes for {job.store}; the next run loads the view again")
    for other in others:
        say(f"changes are still recorded for the view in {other}")


def _run(maintenance: "Maintenance", job: "MaintainJob", reloaded: bool, json: bool) -> None:
    from spillway.maintain import FailedRoundEntry, RoundEntry, lag_metrics, run_rounds
    from spillway.manager.journal import Journal

    reports: list[RoundReport] = []
    forever = job.until == "forever"
    with Journal(job.store.with_name(job.store.name + ".journal.jsonl")) as journal:

        def done(report: "RoundReport") -> None:
            reports.append(report)
            journal.append(RoundEntry(time=time.time(), **asdict(report)))
            if not json:
                say(describe(report))

        def failed(error: SpillwayError) -> None:
            journal.append(FailedRoundEntry(time.time(), str(error)))
            complain(f"the round failed and is tried again: {error}")

        stop = threading.Event()
        with ExitStack() as signals:
            asked = Asked()  # a single round is ended at once, and leaves the view as it was
            if forever:
                ask = interruptible(stop.set, "stopping after the current round")
                asked = signals.enter_context(ask)
            run_rounds(
                maintenance.manager,
                forever=forever,
                interval_seconds=job.interval_seconds,
                stop=stop,
                done=done,
                failed=failed,
            )
    rows = maintenance.store.size()
    if json:
        rounds = [asdict(report) for report in reports]
        print_json(
            {
                "rounds": rounds,
                "rows": rows,
                "store": str(job.store),
                "reloaded": reloaded,
                "interrupted": asked.name,
                **lag_metrics(reports),
            }
        )
    else:
        say(f"{rows:,} rows in {job.store}, table result")


def _verify(maintenance: "Maintenance", json: bool) -> None:
    wrong = maintenance.manager.verify()
    waiting = maintenance.manager.waiting_changes()
    state = maintenance.store.state()
    assert state is not None
    if json:
        print_json(
            {
                "verified": wrong == 0,
                "wrong_rows": wrong,
                "rows": maintenance.store.size(),
                "verified_round": state.round,
                "waiting_changes": waiting,
            }
        )
    if wrong:
        raise StateError(
            f"the stored view differs from recomputation in {wrong} rows; "
            "run spillway maintain with --reload to load it again"
        )
    if not json:
        say(f"the stored view equals recomputation as of round {state.round}")
        if any(waiting.values()):
            later = ", ".join(f"{count:,} of {name}" for name, count in waiting.items() if count)
            say(f"changes that are not in it yet: {later}; run spillway maintain to apply them")


def _explain(job: "MaintainJob", backend: "Backend", updates: int, json: bool) -> None:
    from spillway.maintain import AUTO, current_costs, explain_dict, explain_text, open_sources

    with open_sources(job, backend) as sources:
        document: dict[str, Any] = explain_dict(
            sources.definition,
            sources.locations,
            [updates] * len(sources.locations),
            None if job.strategy == AUTO else job.strategy,
            current_costs(job, sources, backend),
        )
    if json:
        print_json(document)
    else:
        print_text(explain_text(document))


def describe(report: "RoundReport") -> str:
    waited = "" if report.freshness_seconds is None else f"; oldest change {report.freshness_seconds:.1f} s"
    return (
        f"round {report.round}: {report.updates:,} updates, {report.delta_rows:,} view rows changed by "
        f"{report.strategy} with {report.queries} queries in {report.lag_seconds:.3f} s{waited}"
    )
