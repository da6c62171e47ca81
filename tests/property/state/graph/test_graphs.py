"""Any history of a graph of joins and selections gives each of its results by definition, once."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from kit.examples import tries
from kit.histories import Check, History, Player, cleanup_limits, drawn
from kit.random_graphs import MOST_RESULTS, GraphWire, arriving, graphs

GROUPS = 3


MASK = (1 << 5 * GROUPS) - 1


@st.composite
def histories(draw: st.DrawFn) -> History:
    return {
        "graph": draw(graphs(GROUPS)),
        "epochs": draw(arriving()),
        **drawn(draw, [GROUPS], mask=MASK),
        **(draw(busy()) if draw(st.booleans()) else {}),
    }


def busy() -> st.SearchStrategy[History]:
    """Generations end and clean-ups begin after most batches, and a clean-up takes several epochs."""
    return st.fixed_dictionaries(
        {
            "spills": st.lists(st.integers(1, MASK), min_size=8, max_size=16),
            "cleanups": st.lists(st.integers(0, 2), min_size=6, max_size=6),
            "cleanup_limits": st.lists(cleanup_limits(most=20), min_size=1, max_size=2),
        }
    )


@pytest.mark.histories
@tries(everyday=4)
@given(histories())
def test_every_history_of_a_graph_gives_each_result_by_definition(
    play: Callable[[Check, History], None], history: History
) -> None:
    play(check, history)


def check(history: History, directory: Path) -> None:
    wire = GraphWire(**history["graph"])
    wanted, total = wire.by_definition([row for epoch in history["epochs"] for row in epoch])
    assume(total <= MOST_RESULTS)
    graph = wire.graph
    player = Player(history, graph, directory, total)
    player.play([wire.batch(epoch) for epoch in history["epochs"]])
    for name, sink in player.sinks.items():
        assert Counter(sink.rows()) == wanted[name], name
    results = sum(counts.total() for counts in wanted.values())
    counters = player.engine.manifest.counters
    assert counters.results_runtime + counters.results_cleanup == results
    event(f"results: {len(str(results))} digits; clean-up: {counters.results_cleanup > 0}")
    event(f"operators: {len(graph.operators)}, levels: {max(graph.levels) + 1}, roots: {len(wanted)}")
    event(f"spilled: {counters.spills > 0}")
