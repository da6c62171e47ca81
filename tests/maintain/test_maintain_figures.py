"""Every maintenance figure runs on a real server, small, and has the lines of the literature."""

import json
from itertools import count
from pathlib import Path

import pytest

from kit.commands import Call
from kit.postgres import PostgresServers
from spillway.lab.paper.drawing import draw_maintain_figure
from spillway.lab.paper.maintain import MAINTAIN_FIGURES, maintain_experiment
from spillway.lab.paper.maintain_bed import Laboratory
from spillway.lab.paper.maintain_run import RUNS

LINES = {
    "10.8": {"sequential", "batch, composite query", "batch, temporary table", "batch, keys in the query"},
    "10.9": {"batch, composite query", "batch, temporary table", "batch, keys in the query"},
    "10.11": {"batch", "adjacent", "conditional"},
    "10.13": {"batch", "conditional"},
    "11.7": {"best batch", "worst batch", "best grouping", "worst grouping"},
    "11.14": {f"best {plan} {kind}" for plan in ("batch", "grouping") for kind in ("measured", "estimated")},
}


@pytest.fixture
def laboratory(postgres: PostgresServers, tmp_path: Path) -> Laboratory:
    return Laboratory([postgres.database(0)], tmp_path, 2_000, 1, True, lambda _: None, count())


@pytest.mark.parametrize("name", RUNS)
def test_figure(name: str, laboratory: Laboratory, tmp_path: Path) -> None:
    lines = RUNS[name](laboratory)
    assert lines
    assert all(points for points in lines.values())
    assert all(value > 0 for points in lines.values() for value in points.values())
    assert set(lines) == LINES.get(name, set(lines))
    if name == "11.10":
        assert len(lines) == 8, "four paths, measured and estimated"
    drawing = draw_maintain_figure(maintain_experiment(name), {"lines": lines}, tmp_path / "figures")
    assert f"Figure {name}" in drawing.read_text()


def test_table_11_3(call: Call, tmp_path: Path) -> None:
    code, output, _ = call("figure", "table-11.3", "--quick", "--json", "--out", tmp_path)
    assert code == 0
    lines = json.loads(output)["lines"]
    assert lines["time over enumeration"]["20"] <= 0.1
    assert 1 <= lines["cost over enumeration"]["20"] <= 1.02
    assert lines["cost over enumeration"]["1"] >= lines["cost over enumeration"]["5"] >= 1
    assert (tmp_path / "figure-table-11.3.svg").exists()


def test_all_figures_have_a_run() -> None:
    assert {*RUNS, "table-11.3"} == set(MAINTAIN_FIGURES)
