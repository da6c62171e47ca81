"""`auto` over tables that were empty when the view was loaded: its plans follow what the tables hold by
now."""

import random
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from spillway.job import read_maintain_job
from spillway.maintain.choice import CostChoice, candidates
from spillway.maintain.graph import Edge, ViewGraph
from spillway.maintain.maintenance import open_maintenance
from spillway.maintain.plan import RECOMPUTE, MaintenancePlan
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.regression import CostFunction
from spillway.maintain.round_report import RoundReport
from spillway.maintain.strategies.greedy import greedy_plan

TABLES = "abcd"
SQL = "SELECT a.x, d.y FROM a JOIN b ON a.y = b.x JOIN c ON b.y = c.x JOIN d ON c.y = d.x"


@pytest.fixture
def source(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "source.db")
    for table in TABLES:
        connection.execute(f"CREATE TABLE {table} (x INTEGER, y INTEGER)")
    connection.commit()
    sources = "".join(f'[sources.{table}]\nserver = "s"\n' for table in TABLES)
    (tmp_path / "job.toml").write_text(
        f'[view]\nsql = "{SQL}"\n[servers.s]\nkind = "sqlite"\npath = "source.db"\n{sources}'
        '[maintain]\nstore = "view.duckdb"\nstrategy = "auto"\n'
    )
    return connection


def insert(source: sqlite3.Connection, chance: random.Random, rows: int, keys: int) -> None:
    for table in TABLES:
        values = [(chance.randrange(keys), chance.randrange(keys)) for _ in range(rows)]
        source.executemany(f"INSERT INTO {table} VALUES (?, ?)", values)
    source.commit()


@pytest.mark.parametrize("rows", [1, 20, 400])
def test_a_view_loaded_over_empty_tables_makes_no_products(
    source: sqlite3.Connection, tmp_path: Path, rows: int
) -> None:
    chance = random.Random(rows)
    choice = CostChoice()
    with open_maintenance(read_maintain_job(tmp_path / "job.toml"), chooser=choice) as maintenance:
        maintenance.manager.start()
        for number in range(1, 4):
            insert(source, chance, rows, 400)
            report = maintenance.manager.round()
            assert report is not None
            assert report.joined_rows <= 40 * rows * number, report.strategy
            assert choice.costs.cardinalities == (rows * number,) * 4
        source.execute("DELETE FROM b")
        source.commit()
        assert maintenance.manager.round() is not None
        assert choice.costs.cardinalities == (rows * 3, 0, rows * 3, rows * 3)
        assert maintenance.manager.verify() == 0
    choice = CostChoice()
    with open_maintenance(read_maintain_job(tmp_path / "job.toml"), chooser=choice) as maintenance:
        maintenance.manager.start()
        assert choice.costs.cardinalities == (rows * 3, 0, rows * 3, rows * 3), "kept in the store"
        insert(source, chance, rows, 400)
        report = maintenance.manager.round()
        assert report is not None
        assert report.joined_rows <= 160 * rows
        assert maintenance.manager.verify() == 0


def chain(cardinalities: Sequence[int]) -> tuple[ViewGraph, QueryCost]:
    size = len(cardinalities)
    graph = ViewGraph(
        tuple(f"r{n}" for n in range(size)), tuple(Edge(n, n + 1, (("y", "x"),)) for n in range(size - 1))
    )
    directions = [(number, end) for number in range(size - 1) for end in (number, number + 1)]
    flat = CostFunction((0.001, 0.0, 0.0, 0, 0, 0, 0))
    return graph, QueryCost(
        tuple(cardinalities), (2,) * size, dict.fromkeys(directions, flat), dict.fromkeys(directions, 1.0)
    )


def test_greedy_needs_known_sizes_for_its_products() -> None:
    graph, unknown = chain((0, 0, 0, 0))
    sizes = (5, 5, 5, 5)
    assert greedy_plan(graph, sizes).products()
    assert "greedy" not in {candidate.strategy for candidate in candidates(unknown, graph, sizes)}
    _, known = chain((3, 3, 3, 3))
    assert "greedy" in {candidate.strategy for candidate in candidates(known, graph, sizes)}
    pair, empty = chain((0, 0))
    assert not greedy_plan(pair, (5, 5)).products()
    assert "greedy" in {candidate.strategy for candidate in candidates(empty, pair, (5, 5))}


def test_a_kept_choice_ends_when_tables_have_grown() -> None:
    graph, model = chain((10, 10, 10, 10))
    choice = CostChoice()
    choice.prepare(lambda: replace(model, recompute_seconds=float("inf")))
    plans: list[MaintenancePlan | None] = []
    for number in range(6):
        plans.append(choice.plan(graph, (4, 4, 4, 4)))
        report = RoundReport(number, "x", 4, costs=[(0, 4, 1, 0.001)], net_rows=[100_000] * 4)
        choice.observe(report)
    assert choice.costs.cardinalities == (600_010,) * 4
    assert plans[-1] is not None
    assert not plans[-1].products()
    choice.observe(RoundReport(9, RECOMPUTE, 1, net_rows=[-600_010, 0, 0, 5]))
    assert choice.costs.cardinalities == (0, 600_010, 600_010, 600_015)
