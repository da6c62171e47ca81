"""The engine of `bench spill` as it runs it: a process of its own, under a budget, with a journal to read."""

from pathlib import Path

from spillway.lab.bench.budget_metrics import peak_resident_bytes
from spillway.lab.bench.spill import run_with_journal
from spillway.lab.engines.data import write_join_data
from spillway.lab.engines.peers import spillway_argv
from spillway.manager.budget import MINIMUM_BYTES

ROWS, FILES = 60_000, 4


def test_a_run_under_a_budget_gives_its_results_and_its_epochs(tmp_path: Path) -> None:
    write_join_data(tmp_path / "data", rows=ROWS, files=FILES)
    argv = spillway_argv(
        tmp_path / "data", tmp_path / "out", memory_bytes=MINIMUM_BYTES, warm_up_rows=ROWS // 50
    )
    result, epochs = run_with_journal("spillway-small", argv, 240.0, lambda _: None)
    assert result.finished, result.note
    assert result.rows_in == 3 * ROWS
    assert result.cpu_seconds is not None and 0 < result.cpu_seconds < 8 * result.seconds
    assert [entry.batch_id for entry in epochs if entry.batch_id is not None] == list(range(FILES))
    assert sum(entry.results for entry in epochs) == result.results > 0
    assert 0 < peak_resident_bytes(epochs) <= MINIMUM_BYTES
    assert sum(len(entry.spills) for entry in epochs) > 0
