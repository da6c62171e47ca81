"""After every round the stored view is the join of its sources at the cut, whoever writes meanwhile."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.examples import examples
from spillway.maintain.choice import choose_by_name
from spillway.maintain.plan import RECOMPUTE
from spillway.maintain.strategies.registry import STRATEGIES

FEW = settings(
    max_examples=examples(20),  # an example makes databases: more than a second
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
KINDS = ("postgresql", "postgresql log", "sqlite", "duckdb")
PAIRS = ("aa", "ab", "ba", "bb", "cc", "aa bb")


@st.composite
def shapes(draw: st.DrawFn, largest: int = 5) -> tuple[int, list[tuple[int, int, str]]]:
    """A number of inputs and edges that connect them: chains, stars, trees, cycles."""
    inputs = draw(st.integers(2, largest))
    shape = draw(st.sampled_from(["chain", "star", "tree"]))
    start = {"chain": lambda n: n - 1, "star": lambda _: 0}.get(shape)
    ends = [(start(n) if start else draw(st.integers(0, n - 1)), n) for n in range(1, inputs)]
    more = [(a, b) for b in range(inputs) for a in range(b) if (a, b) not in ends]
    if more:
        ends += draw(st.lists(st.sampled_from(more), max_size=2, unique=True))
    return inputs, [(a, b, draw(st.sampled_from(PAIRS))) for a, b in ends]


@pytest.mark.parametrize("kind", [*KINDS, "mixed"])
@FEW
@given(
    strategy=st.sampled_from([*STRATEGIES, RECOMPUTE]),
    shape=shapes(),
    seed=st.integers(0, 10**6),
    cooperative=st.booleans(),
)
def test_rounds_while_others_write(
    world: Any,
    kind: str,
    strategy: str,
    shape: tuple[int, list[tuple[int, int, str]]],
    seed: int,
    cooperative: bool,
) -> None:
    inputs, edges = shape
    tested = world(
        KINDS if kind == "mixed" else [kind, kind][: 1 + seed % 2],
        edges,
        inputs,
        chooser=choose_by_name(strategy),
        chance=random.Random(seed),
        cooperative=cooperative,
    )
    tested.write(6 * inputs)
    tested.settle()  # recording changes begins when running writers are through
    manager = tested.start()
    for number in range(3):
        manager.open()
        manager.round()
        assert tested.stored() == tested.expected(), f"round {number}"
        tested.write(4)
        if number == 1:
            tested.stop()
            manager = tested.start()
    tested.settle()
    tested.calm()
    manager.round()
    assert tested.stored() == tested.expected()
    assert manager.verify() == 0
    tested.stop()
