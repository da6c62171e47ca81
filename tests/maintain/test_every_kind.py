"""Every strategy over every kind of source: chains, stars and cycles of 2 to 8 inputs, while others write."""

import random
from typing import Any

import pytest

from spillway.maintain.choice import choose_by_name
from spillway.maintain.plan import RECOMPUTE
from spillway.maintain.strategies.registry import STRATEGIES

KINDS = ("postgresql", "sqlite", "duckdb", "delta", "postgresql log", "mixed")
SHAPES = ("chain", "star", "cyclic")
LARGEST = {"greedy": 4, "sequential": 5}
"""Greedy grouping multiplies what has no edge; sequential maintenance asks once per update."""


def edges(shape: str, inputs: int, chance: random.Random) -> list[tuple[int, int, str]]:
    ends = [(0 if shape == "star" else node - 1, node) for node in range(1, inputs)]
    if shape == "cyclic":
        ends.append((0, inputs - 1))
        if inputs > 4:
            ends.append((1, inputs - 2))
    return [(a, b, chance.choice(["aa", "ab", "ba", "bb"])) for a, b in ends]


def row(chance: random.Random) -> tuple[int | None, int | None, str | None]:
    value = lambda: chance.choice([0, 0, 1, None])  # noqa: E731
    return value(), value(), chance.choice(["", "x", None, "line\nbreak, 'quote' \\"])


CASES = [
    (kind, strategy, SHAPES[(i + j) % 3], 2 + (3 * i + j) % 7)
    for i, kind in enumerate(KINDS)
    for j, strategy in enumerate([*STRATEGIES, RECOMPUTE])
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("kind", "strategy", "shape", "inputs"), CASES)
def test_the_view_is_right_after_every_round(
    world: Any, kind: str, strategy: str, shape: str, inputs: int
) -> None:
    inputs = min(max(inputs, 3 if shape == "cyclic" else 2), LARGEST.get(strategy, 8))
    chance = random.Random(f"{kind} {strategy}")
    tested = world(
        KINDS[:5] if kind == "mixed" else [kind, kind],
        edges(shape, inputs, chance),
        inputs,
        chooser=choose_by_name(strategy),
        chance=chance,
        cooperative=chance.random() < 0.5,
    )
    for home in tested.homes:
        tested.servers[home.server].writer.insert(home.table, (0, 0, "always joins"))
        for _ in range(4 if inputs < 7 else 3):
            tested.servers[home.server].writer.insert(home.table, row(chance))
    manager = tested.start()
    manager.open()
    seen = changed = 0
    for number in range(3):
        for home in tested.homes:
            tested.servers[home.server].writer.insert(home.table, row(chance))
        tested.write(3)
        report = manager.round()
        assert report is not None
        assert report.strategy == strategy
        assert tested.stored() == tested.expected(), f"round {number}"
        seen, changed = seen + tested.stored().total(), changed + report.delta_rows
    tested.settle()
    tested.calm()
    manager.round()
    assert tested.stored() == tested.expected()
    assert manager.verify() == 0
    assert seen, "the view was empty: the test would say nothing"
    assert changed


def test_the_cases_cover_all_shapes_of_all_kinds_and_strategies() -> None:
    for place, values in ((0, KINDS), (1, (*STRATEGIES, RECOMPUTE))):
        for value in values:
            assert {case[2] for case in CASES if case[place] == value} == set(SHAPES)
    assert {case[3] for case in CASES} == set(range(2, 9))
