"""`spillway bench maintain --spark`: the strategies on a chain of Delta tables; every query is a Spark job.

Updates are appends: deleting a row of a Delta table rewrites its file, which would measure Delta.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from spillway.lab.bench.maintain import StrategyTurns, ratios_of, round_of, summary_of
from spillway.lab.bench.maintain_data import NOWHERE, PRIMES, chain_view, joining_rows
from spillway.maintain import (
    AUTO,
    SPARK,
    Backend,
    MaintainJob,
    RoundReport,
    ServerSpec,
    TableLocation,
    open_maintenance,
)
from spillway.model import View
from spillway.spark.maintain import SparkServer


def bench_tables(
    spark: SparkSession,
    *,
    relations: int,
    rows: int,
    updates: Sequence[int],
    ratio: float,
    strategies: Sequence[str],
    repeats: int,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Times of every strategy for every number of updates, and how they compare."""
    tables = [f"r{number}" for number in range(relations)]
    joining = joining_rows(rows, ratio, relations)
    chance = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="spillway-bench-maintain-") as scratch:
        lake = Path(scratch) / "lake"
        for seed, table in enumerate(tables):
            note(f"writing {table} with {rows:,} rows")
            numbers = np.arange(rows)
            write_deltalake(lake / table, _rows(numbers, numbers, joining, ratio, seed))
        job = MaintainJob(
            view=View.sql(chain_view(tables)),
            servers={"lake": ServerSpec(SPARK, str(lake))},
            sources={table: TableLocation("lake", table) for table in tables},
            store=Path(scratch) / "view.duckdb",
        )

        def write(count: int) -> None:
            for seed, table in enumerate(tables):
                share = max(1, count // relations)
                numbers = chance.integers(0, joining, share)
                ids = rows + chance.integers(0, 10**9, share)
                write_deltalake(lake / table, _rows(ids, numbers, joining, ratio, seed), mode="append")

        turns = StrategyTurns(strategies)
        backend = Backend(lambda spec: SparkServer(spark, spec.place))
        with open_maintenance(job, backend, chooser=turns) as maintenance:
            note("loading the view")
            maintenance.manager.open()
            if AUTO in strategies:
                note("learning costs from sample queries")
                maintenance.manager.start()
            # The first jobs compile their code.
            round_of(maintenance, turns, strategies[0], write, min(updates))
            results: dict[str, dict[str, dict[str, Any]]] = {}
            for count in updates:
                reports: dict[str, list[RoundReport]] = {strategy: [] for strategy in strategies}
                for _ in range(repeats):  # in turns, because every round adds files
                    for strategy in chance.permutation(strategies):
                        report = round_of(maintenance, turns, str(strategy), write, count)
                        reports[str(strategy)].append(report)
                results[str(count)] = {strategy: summary_of(found) for strategy, found in reports.items()}
                for strategy, summary in results[str(count)].items():
                    note(f"{count} updates, {strategy}: {summary}")
            wrong = maintenance.manager.verify()
    return {
        "bench": "maintain", "sources": "Delta tables by Spark jobs", "relations": relations, "rows": rows,
        "ratio": ratio, "results": results, "wrong_rows": wrong, "ratios": ratios_of(results),
    }  # fmt: skip


def _rows(ids: Any, numbers: Any, joining: int, ratio: float, seed: int) -> pa.Table:
    """Rows of a relation as in `bench/maintain_data.py`, without text."""
    values = max(1, int(joining / ratio))
    left, right = numbers % values, (numbers * PRIMES[seed % len(PRIMES)] + seed) % values
    joins = numbers < joining
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "a": pa.array(np.where(joins, left, -1 - numbers), pa.int64()),
            "b": pa.array(np.where(joins, right, NOWHERE + numbers), pa.int64()),
            "payload": pa.array(numbers * 31, pa.int64()),
        }
    )
