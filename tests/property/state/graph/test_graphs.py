"""Any history of a graph of joins and selections gives each of its results by definition, once."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from kit.examples import tries
from kit.histories import Check, History, Player, drawn
from kit.random_graphs import MOST_RESULTS, GraphWire, arriving, graphs

GROUPS = 3


@st.composite
def histories(draw: st.DrawFn) -> History:
    return {
        "graph": draw(graphs(GROUPS)),
        "epochs": draw(arriving()),
        **drawn(draw, [GROUPS], mask=(1 << 15) - 1),
    }


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
