"""Runs the variants of a tree experiment for each seed, on one Spark session."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from spillway.job import SourceSpec
from spillway.lab.engines import ResultSum, query_sum
from spillway.lab.paper.experiment import Variant
from spillway.lab.paper.outcome import Outcome, tree_outcome
from spillway.lab.paper.run import check_results
from spillway.lab.paper.tree import TreeExperiment
from spillway.manager.journal import FILE_NAME, read_journal
from spillway.model import MINIMUM_BYTES, View
from spillway.spark.session import Session
from spillway.workload import SCHEMA_SQL, STREAMS, TREE, VIEW


def run_tree_experiment(
    session: Session, experiment: TreeExperiment, seeds: int, directory: Path, note: Callable[[str], None]
) -> tuple[list[list[Outcome]], list[int]]:
    """The outcomes by seed and variant, and how many results each seed's view has, as DuckDB counts them.

    The first seed runs to the end, the others until their input is exhausted, because they show what happens
    before clean-up.
    """
    small = replace(
        experiment, rows=2 * experiment.groups, tuple_range=6 * experiment.groups, epochs=2,
        memory_bytes=MINIMUM_BYTES,
    )  # fmt: skip
    small.workload(0).write(directory / "warm-up-data", small.epochs)
    _run(session, small, small.variants[0], directory / "warm-up-data", directory / "warm-up", clean=True)
    found, expected = [], []
    for seed in range(seeds):
        data = directory / f"data-{seed}"
        experiment.workload(seed).write(data, experiment.epochs)
        answer = _answer(data)
        expected.append(answer.rows)
        outcomes = []
        for variant in experiment.variants:
            place, clean = directory / f"{seed}-{variant.label}", seed == 0
            made = _run(session, experiment, variant, data, place, clean=clean)
            if clean:
                check_results(f"{experiment.name}, seed {seed}, {variant.label}", place / "out", answer)
            rest = f", {made.cleanup_results:,} in clean-up in {made.cleanup_seconds:.1f} s" if clean else ""
            note(
                f"seed {seed}, {variant.label}: {made.runtime_results:,} results at run time in "
                f"{made.runtime_seconds:.1f} s{rest}, {made.spills} spills"
            )
            outcomes.append(made)
        found.append(outcomes)
    return found, expected


def _run(
    session: Session,
    experiment: TreeExperiment,
    variant: Variant,
    data: Path,
    directory: Path,
    *,
    clean: bool,
) -> Outcome:
    """One run; without `clean` it stops when only clean-up is left."""
    options = {"maxFilesPerTrigger": "1"}
    left = experiment.rows * len(STREAMS)

    def note(entry: dict[str, Any]) -> None:
        nonlocal left
        left -= entry["input_rows"]
        if not clean and not left and entry["kind"] == "cleanup":
            query.request_stop()

    query = session.run(
        View.sql(VIEW).with_tree(*TREE),
        {name: SourceSpec(name, "parquet", str(data / name), SCHEMA_SQL, options) for name in STREAMS},
        checkpoint=str(directory / "state"),
        sink="parquet",
        path=str(directory / "out"),
        processors=variant.processors,
        groups=experiment.groups,
        memory_bytes=experiment.memory_bytes,
        spill=variant.spill,
        spill_share=variant.spill_share,
        listener=note,
    )
    query.awaitTermination()
    made = tree_outcome(variant, tuple(read_journal(directory / "state" / FILE_NAME)), experiment.row_seconds)
    return replace(made, complete=clean)


def _answer(data: Path) -> ResultSum:
    with duckdb.connect() as database:
        for name in STREAMS:
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{data}/{name}/*.parquet')")
        return query_sum(database, VIEW)
