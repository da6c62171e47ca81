"""What is shown of a run that adapts: events, totals, bars; plain lines off a terminal."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from spillway.cli.run_view import RunTotals, RunView, bar, events

MEGABYTE = 1 << 20


def entry(sequence: int, **changes: Any) -> dict[str, Any]:
    processors = [
        {"processor": 0, "resident_bytes": 3 * MEGABYTE, "peak_bytes": 4 * MEGABYTE},
        {"processor": 1, "resident_bytes": MEGABYTE, "peak_bytes": MEGABYTE},
    ]
    return {
        "sequence": sequence,
        "kind": "epoch",
        "input_rows": 1_000,
        "results": 50,
        "pending_rows": 0,
        "budget_bytes": 4 * MEGABYTE,
        "processors": processors,
        "spills": [],
        "relocation": {"switched": []},
    } | changes


SPILL = {"processor": 0, "groups": [1, 2, 3], "bytes": MEGABYTE}
MOVE = {"sender": 0, "receiver": 1, "groups": [7, 9], "bytes": MEGABYTE // 2}
EVENTFUL = entry(4, spills=[SPILL], relocation={"switched": [MOVE]})
CLEANED = entry(5, kind="cleanup", input_rows=0, results=20, budget_bytes=4 * MEGABYTE)


def test_events() -> None:
    assert list(events(entry(3))) == []
    assert list(events(EVENTFUL)) == [
        "epoch 4: processor 0 spilled 3 groups (1.0 MB)",
        "epoch 4: 2 groups moved from processor 0 to processor 1 (0.5 MB)",
    ]
    assert list(events(CLEANED)) == ["epoch 5: clean-up added 20 results of spilled groups"]


def test_totals() -> None:
    totals = RunTotals()
    for each in (entry(3), EVENTFUL, CLEANED):
        totals.add(each)
    assert (totals.input_rows, totals.results_runtime, totals.results_cleanup) == (2_000, 100, 20)
    assert (totals.moves, totals.moved_groups, totals.spills) == (1, 2, {0: 1})
    assert totals.peak_bytes == 4 * MEGABYTE


@pytest.mark.parametrize(
    ("state", "peak", "shown"),
    [
        (0, 0, "·" * 24),
        (2, 3, "█" * 12 + "▒" * 6 + "·" * 6),
        (4, 9, "█" * 24),  # never longer than the budget
        (3, 1, "█" * 18 + "·" * 6),
    ],
)
def test_bar(state: int, peak: int, shown: str) -> None:
    assert bar(state, peak, 4).plain == shown


def test_off_a_terminal_events_are_lines_and_totals_come_last(capsys: pytest.CaptureFixture[str]) -> None:
    with RunView() as view:
        for each in (entry(3), EVENTFUL, CLEANED):
            view.epoch(each)
    output, error = capsys.readouterr()
    assert output == ""
    first, *told, last = error.splitlines()
    assert first == "starting Spark"
    assert told == [*events(EVENTFUL), *events(CLEANED)]
    assert last == (
        "epoch 5: 2,000 rows in; state: 3.0 MB, 1.0 MB; results: 100 at run time, 20 from clean-up"
    )


def test_on_a_terminal_the_lines_fit() -> None:
    view = RunView()
    console = Console(width=80, record=True, file=StringIO())
    console.print(view._render())
    assert "starting Spark" in console.export_text()
    view.epoch(EVENTFUL | {"pending_rows": 1_234})
    console.print(view._render())
    zero, one, rows, moves, results = console.export_text().splitlines()
    assert zero.startswith("processor 0  " + "█" * 18 + "▒" * 6)
    assert zero.rstrip().endswith("state 3.0, peak 4.0 of 4.0 MB, 1 spill")
    assert one.rstrip().endswith("0 spills")
    assert rows.startswith("input        1,000 rows, 1,234 parked, epoch 4")
    assert moves.startswith("moves        2 groups in 1 move")
    assert results.startswith("results      50 at run time + 0 from clean-up")
