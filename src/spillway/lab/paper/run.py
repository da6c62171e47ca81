"""Runs the variants of an experiment in sequence on one Spark session, each with its own checkpoint and
results.

A short run with spills and clean-up comes first, so the first variant does not pay for the start of Spark's
Python workers.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from spillway.errors import BudgetError, StateError
from spillway.job import SourceSpec
from spillway.lab.engines import STREAMS, VIEW, VIEW_OF_KEYS, ResultSum, parquet_sum, query_sum
from spillway.lab.paper.experiment import Experiment, Variant
from spillway.lab.paper.outcome import Outcome, outcome
from spillway.manager.journal import FILE_NAME, read_journal
from spillway.model import MINIMUM_BYTES
from spillway.policy.spill import NO_SPILL
from spillway.spark.session import Session
from spillway.spark.sources import FORMAT
from spillway.workload import keys

WARM_UP_EPOCHS = 2
WARM_UP_BYTES = 5 << 20
"""A little more than the smallest budget: one spill and its clean-up."""


def run_experiment(
    session: Session, experiment: Experiment, directory: Path, note: Callable[[str], None]
) -> list[Outcome]:
    """The outcome of each variant; `directory` gets their checkpoints and results."""
    payload_bytes = len(STREAMS) * experiment.width_bytes
    shortened = replace(
        experiment,
        rows=WARM_UP_BYTES // payload_bytes,
        epochs=WARM_UP_EPOCHS,
        memory_bytes=MINIMUM_BYTES,
    )
    last = experiment.variants[-1]
    spilling = "least-productive" if last.spill == NO_SPILL and last.has_budget else last.spill
    _run(session, shortened, replace(last, spill=spilling), directory / "warm-up")
    outcomes = []
    answer = _answer(experiment)
    for number, variant in enumerate(experiment.variants):
        made = _run(session, experiment, variant, directory / f"{number}")
        if made.stopped is None:
            check_results(f"{experiment.name}, {variant.label}", directory / f"{number}" / "out", answer)
        note(
            f"{variant.label}: {made.runtime_results:,} results at run time in {made.runtime_seconds:.1f} s, "
            f"{made.cleanup_results:,} in clean-up in {made.cleanup_seconds:.1f} s"
            + ("" if made.stopped is None else f"; {made.stopped}")
        )
        outcomes.append(made)
    return outcomes


def check_results(run: str, out: Path, answer: ResultSum) -> None:
    """Refuse a run whose results are not those of the view."""
    found = parquet_sum(out)
    if found != answer:
        raise StateError(
            f"figure {run}: {found.rows} results with checksum {found.checksum}, but DuckDB has "
            f"{answer.rows} with {answer.checksum}; please report this"
        )


def _answer(experiment: Experiment) -> ResultSum:
    """The sum of the view's results, computed by DuckDB without the payloads, which all differ."""
    workload = experiment.workload()
    with duckdb.connect() as database:
        for name in STREAMS:
            found = pa.array(keys(workload, name, 0, experiment.rows))
            ids = pa.array(range(experiment.rows), pa.int64())
            database.register(name, pa.table({"k": found, "id": ids}))
        return query_sum(database, VIEW_OF_KEYS)


def _run(session: Session, experiment: Experiment, variant: Variant, directory: Path) -> Outcome:
    query = session.run(
        VIEW,
        {name: SourceSpec(name, FORMAT, options=experiment.options(name)) for name in STREAMS},
        checkpoint=str(directory / "state"),
        sink="parquet",
        path=str(directory / "out"),
        processors=variant.processors,
        groups=experiment.groups,
        memory_bytes=experiment.memory_bytes if variant.has_budget else None,
        spill=variant.spill,
        spill_share=variant.spill_share,
        adapt=variant.adapt,
        policy=variant.policy,
        distribution=variant.distribution,
    )
    stopped = None
    try:
        query.awaitTermination()
    except BudgetError as error:
        if variant.spill != NO_SPILL:
            raise
        stopped = f"ran out of memory: {error}"
    made = outcome(variant, tuple(read_journal(directory / "state" / FILE_NAME)), experiment.row_seconds)
    return made if stopped is None else replace(made, complete=False, stopped=stopped)
