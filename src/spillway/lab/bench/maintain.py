"""The benchmark `maintain`: compares the strategies on one view over real PostgreSQL servers.

For every number of updates each strategy maintains its own batch of that size, several times; its time is the
median from the start of the round to the view's delta, without applying the delta, which takes the same time
for all. Sequential maintenance queries per update, so it is measured once, for the smallest number of
updates. Optionally all relations are copied into one server as a materialized view, and REFRESH is timed
against a round of one update per thousand rows.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from spillway.lab.bench.maintain_data import (
    JoiningRows,
    chain_view,
    create_relation,
    joining_rows,
    postgres_servers,
    update_relation,
)
from spillway.maintain import (
    AUTO,
    MaintainJob,
    Maintenance,
    MaintenancePlan,
    QueryCost,
    RoundReport,
    ServerSpec,
    TableLocation,
    ViewGraph,
    ViewStore,
    choose_by_name,
    open_maintenance,
)
from spillway.maintain.strategies import STRATEGIES
from spillway.model import View

SEQUENTIAL = "sequential"


def bench_maintain(
    *,
    relations: int,
    rows: int,
    servers: int,
    updates: Sequence[int],
    ratio: float,
    strategies: Sequence[str],
    repeats: int,
    indexed: bool,
    refresh: bool,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Times of every strategy for every number of updates, and how they compare."""
    tables = [f"r{number}" for number in range(relations)]
    with (
        tempfile.TemporaryDirectory(prefix="spillway-bench-maintain-") as scratch,
        postgres_servers(Path(scratch), servers) as dsns,
    ):
        joining = joining_rows(rows, ratio, relations)
        dsn_of = {table: dsns[number % servers] for number, table in enumerate(tables)}
        for seed, table in enumerate(tables):
            note(f"creating {table} with {rows:,} rows")
            create_relation(
                dsn_of[table], table, rows=rows, joining=joining, ratio=ratio, seed=seed, indexed=indexed
            )
        job = MaintainJob(
            view=View.sql(chain_view(tables)),
            servers={f"s{number}": ServerSpec("postgresql", dsn) for number, dsn in enumerate(dsns)},
            sources={
                table: TableLocation(f"s{number % servers}", table) for number, table in enumerate(tables)
            },
            store=Path(scratch) / "view.duckdb",
        )
        chance = random.Random(0)  # noqa: S311 - data of a benchmark

        kept = {table: JoiningRows(joining, seed) for seed, table in enumerate(tables)}
        values = max(1, int(joining / ratio))

        def write(count: int) -> None:
            for table, rows_of in kept.items():
                update_relation(
                    dsn_of[table],
                    table,
                    updates=count // relations,
                    joining=rows_of,
                    values=values,
                    chance=chance,
                )

        turns = StrategyTurns(strategies)
        with open_maintenance(job, chooser=turns) as maintenance:
            note("loading the view")
            began = time.monotonic()
            maintenance.manager.open()
            load_seconds = time.monotonic() - began
            if AUTO in strategies:
                note("learning costs from sample queries")
                maintenance.manager.start()
            results: dict[str, dict[str, dict[str, Any]]] = {}
            for count in updates:
                chosen = [name for name in strategies if name != SEQUENTIAL or count == min(updates)]
                reports: dict[str, list[RoundReport]] = {strategy: [] for strategy in chosen}
                for number in range(repeats):  # in turns, so that a busy moment of the machine hits all
                    # In another order each time: a round after a large one has to allocate memory again.
                    for strategy in chance.sample(chosen, len(chosen)):
                        if strategy != SEQUENTIAL or number == 0:
                            reports[strategy].append(round_of(maintenance, turns, strategy, write, count))
                results[str(count)] = {strategy: summary_of(found) for strategy, found in reports.items()}
                for strategy, found in results[str(count)].items():
                    note(f"{count} updates, {strategy}: {found}")
            wrong = maintenance.manager.verify()
            metrics: dict[str, Any] = {
                "bench": "maintain", "relations": relations, "rows": rows, "servers": servers, "ratio": ratio,
                "indexed": indexed,
                "load_seconds": round(load_seconds, 3), "results": results, "wrong_rows": wrong,
                "ratios": ratios_of(results),
            }  # fmt: skip
            if refresh:
                metrics["refresh"] = _refresh(maintenance, turns, tables, dsn_of, write, rows, repeats, note)
        return metrics


class StrategyTurns:
    """Strategies that take turns at the rounds of one view; each learns from the rounds of all."""

    def __init__(self, strategies: Sequence[str]) -> None:
        self._choosers = {name: choose_by_name(name) for name in (*STRATEGIES, *strategies)}
        self.strategy = strategies[0]

    def prepare(self, learn: Callable[[], QueryCost], /) -> None:
        for chooser in self._choosers.values():
            chooser.prepare(learn)

    def plan(self, graph: ViewGraph, sizes: Sequence[int], /) -> MaintenancePlan | None:
        return self._choosers[self.strategy].plan(graph, sizes)

    def observe(self, report: RoundReport, /) -> None:
        for chooser in self._choosers.values():
            chooser.observe(report)

    def save(self, store: ViewStore, /) -> None:
        for chooser in self._choosers.values():
            chooser.save(store)


def round_of(
    maintenance: Maintenance, turns: StrategyTurns, strategy: str, write: Callable[[int], None], count: int
) -> RoundReport:
    """One round by a strategy, after `count` updates."""
    turns.strategy = strategy
    write(count)
    report = maintenance.manager.round()
    assert report is not None
    return report


def summary_of(reports: Sequence[RoundReport]) -> dict[str, Any]:
    """The medians over the rounds of one strategy."""
    return {
        "seconds": round(statistics.median(report.maintain_seconds for report in reports), 4),
        "query_seconds": round(statistics.median(report.query_seconds for report in reports), 4),
        "round_seconds": round(statistics.median(report.lag_seconds for report in reports), 4),
        "queries": reports[-1].queries,
        "strategy": reports[-1].strategy,
        "view_rows": reports[-1].delta_rows,
    }


def ratios_of(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, float]]:
    """How many times faster conditional grouping is than the others; the choice against the best."""
    ratios: dict[str, dict[str, float]] = {}
    for count, by_strategy in results.items():
        seconds = {name: measured["seconds"] for name, measured in by_strategy.items()}
        if "conditional" in seconds:
            base = max(seconds["conditional"], 1e-9)
            ratios[count] = {f"{name}/conditional": round(value / base, 2) for name, value in seconds.items()}
        if AUTO in seconds and len(seconds) > 1:
            best = min(value for name, value in seconds.items() if name != AUTO)
            ratios.setdefault(count, {})["auto/best"] = round(seconds[AUTO] / max(best, 1e-9), 2)
    return ratios


def _refresh(
    maintenance: Maintenance,
    turns: StrategyTurns,
    tables: Sequence[str],
    dsn_of: Mapping[str, str],
    write: Callable[[int], None],
    rows: int,
    repeats: int,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """REFRESH MATERIALIZED VIEW with all relations in one server, against a round with 0.1 % changed rows."""
    home = dsn_of[tables[0]]
    with psycopg.connect(home, autocommit=True) as connection:
        for table in tables:
            note(f"copying {table} for the materialized view")
            connection.execute(f"CREATE TABLE m_{table} (id bigint, a bigint, b bigint, payload text)")
            with (
                psycopg.connect(dsn_of[table]) as source,
                source.cursor().copy(f"COPY {table} TO STDOUT") as out,
                connection.cursor().copy(f"COPY m_{table} FROM STDIN") as into,
            ):
                for block in out:
                    into.write(block)
            connection.execute(f"CREATE INDEX ON m_{table} (a)")
            connection.execute(f"ANALYZE m_{table}")
        view = chain_view([f"m_{table}" for table in tables])
        connection.execute(f"CREATE MATERIALIZED VIEW whole AS {view}")
        began = time.monotonic()
        connection.execute("REFRESH MATERIALIZED VIEW whole")
        refresh_seconds = time.monotonic() - began
    count = max(len(tables), rows // 1000 * len(tables))
    reports = [round_of(maintenance, turns, "conditional", write, count) for _ in range(repeats)]
    seconds = statistics.median(report.lag_seconds for report in reports)
    return {
        "refresh_seconds": round(refresh_seconds, 3),
        "round_seconds": round(seconds, 3),
        "parts": {
            part: round(statistics.median(getattr(report, f"{part}_seconds") for report in reports), 3)
            for part in ("cut", "query", "maintain", "apply")
        },
        "updates": reports[-1].updates,
        "times_faster": round(refresh_seconds / seconds, 1),
    }
