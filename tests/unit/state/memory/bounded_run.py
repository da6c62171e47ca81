"""A run of the real engine under a budget, in a process of its own that somebody watches from outside.

It joins three inputs whose wire batches are mapped from files, so that nothing but the engine takes memory.
A first, small run warms it up; then it says "ready" and waits for a line, and at the end it prints the
largest memory that it counted itself.

Usage: bounded_run.py DIRECTORY TIER MEMORY_BYTES
"""

import sys
from pathlib import Path

import pyarrow as pa

from spillway.manager import StagedEpoch
from spillway.manager.budget import Budget
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

INPUTS, GROUPS, ROW_BYTES = 3, 64, 280
PLAN = JoinOperator(
    inputs=tuple(WireInput(f"s{number}", ("id", "p"), ("s0", "s1")) for number in range(INPUTS)),
    outputs=tuple(ColumnRef(number, column) for number in range(INPUTS) for column in (0, 1)),
    residual=None,
    key_columns=((),) * INPUTS,
    groups=GROUPS,
    result_schema=pa.schema(
        [
            (f"{name}{n}", kind)
            for n in range(INPUTS)
            for name, kind in (("id", pa.int64()), ("p", pa.string()))
        ]
    ),
)


class ForgetfulSink(ListSink):
    """Keeps nothing: results must not count as memory of the engine."""

    def commit(self, epoch: StagedEpoch) -> None:
        pass


def run(directory: Path, tier: Path, memory_bytes: int) -> int:
    """Join the files of a directory, clean-up included; the largest memory in any report."""
    budget = Budget(memory_bytes)
    config = EngineConfig(processors=1, groups=GROUPS, tier=str(tier), budget=budget)
    sink = ForgetfulSink(str(directory / "staging"))
    engine = Engine(config, Graph.of_one(PLAN), "q", Storage(str(directory / "state")), sink, Journal(None))
    batch_rows = budget.limits(config.limits, INPUTS).round_bytes // ROW_BYTES
    peaks = []
    for number, path in enumerate(sorted(directory.glob("*.arrow"))):
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        entries = [engine.run_epoch(LocalCluster(Graph.of_one(PLAN), batch, batch_rows), number)]
        while engine.has_pending:
            entries.append(engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None))
        peaks += [entry.processors[0].peak_bytes for entry in entries]
    assert engine.manifest.counters.spills
    while engine.has_cleanup:
        peaks.append(engine.run_cleanup_epoch(LocalCluster(Graph.of_one(PLAN))).processors[0].peak_bytes)
    assert engine.manifest.counters.results_cleanup
    return max(peaks)


if __name__ == "__main__":
    root, images = Path(sys.argv[1]), Path(sys.argv[2])
    run(root / "warm-up", images / "warm-up", 4 << 20)
    print("ready", flush=True)
    sys.stdin.readline()
    print(run(root / "run", images / "run", int(sys.argv[3])), flush=True)
    sys.stdin.readline()
