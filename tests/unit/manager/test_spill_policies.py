"""Every spill policy under a real budget, with state several times its size: the whole answer, none twice.

The engine, its steps, state and policies are the real ones; only Spark is not there.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spillway.manager.budget import Budget
from spillway.manager.engine import Engine
from spillway.manager.engine_config import EngineConfig
from spillway.manager.journal import FILE_NAME, Journal, read_journal
from spillway.plan.expression import ColumnRef
from spillway.state.operator import JoinOperator, WireInput
from spillway.state.reference import join
from spillway.state.storage import Storage
from spillway.testing import ListSink, LocalCluster

MEMORY_BYTES = 4 << 20
TIMES_MEMORY = 1.5
ROWS, EPOCHS, GROUPS, WIDTH_BYTES = 2_400, 3, 16, 3_000
"""Rows of all inputs; each key has one row per input on average."""
POLICIES = ("least-productive", "least-recent", "most-productive", "random", "recent-history")
MIX = np.uint64(0x9E3779B97F4A7C15)


def operator(inputs: int) -> JoinOperator:
    return JoinOperator(
        inputs=tuple(WireInput(f"s{number}", ("id", "p"), ("s0", "s1")) for number in range(inputs)),
        outputs=tuple(ColumnRef(number, 0) for number in range(inputs)),
        residual=None,
        key_columns=((),) * inputs,
        groups=GROUPS,
        result_schema=pa.schema([(f"id{number}", pa.int64()) for number in range(inputs)]),
    )


@pytest.mark.parametrize(
    ("policy", "inputs"), [*((one, 3) for one in POLICIES), ("least-productive", 5), ("recent-history", 5)]
)
def test_results_at_run_time_and_in_clean_up_add_up_to_the_answer(
    quick_directory: Callable[[], Path], policy: str, inputs: int
) -> None:
    plan, directory = operator(inputs), quick_directory()
    chance = np.random.default_rng(4)
    tags = chance.integers(0, inputs, ROWS)
    keys = chance.integers(1, len(tags) // inputs + 1, len(tags))
    whole = pa.table(
        {
            "t": pa.array(tags.astype(np.int8)),
            "h": pa.array((keys.astype(np.uint64) * MIX).view(np.int64)),
            "s0": np.arange(len(tags)),
            "s1": [f"{number}".ljust(WIDTH_BYTES) for number in range(len(tags))],
        }
    )
    budget = Budget(MEMORY_BYTES)
    config = EngineConfig(1, GROUPS, str(directory / "tier"), budget=budget, spill=policy)
    sink = ListSink(str(directory / "staging"))
    with Journal(directory / FILE_NAME) as journal:
        engine = Engine(config, plan, "q", Storage(str(directory / "state")), sink, journal)
        share = len(tags) // EPOCHS
        batch_rows = budget.limits(config.limits, inputs).round_bytes // WIDTH_BYTES
        for epoch in range(EPOCHS):
            batch = whole.slice(epoch * share, share).combine_chunks().to_batches()[0]
            engine.run_epoch(LocalCluster(plan, batch, batch_rows), epoch)
            while engine.has_pending:
                engine.run_epoch(LocalCluster(plan), None)
        while engine.has_cleanup:
            engine.run_cleanup_epoch(LocalCluster(plan))
    epochs = list(read_journal(directory / FILE_NAME))
    durable = sum(path.stat().st_size for path in (directory / "state" / "runs").iterdir())
    assert durable >= TIMES_MEMORY * MEMORY_BYTES
    assert {spill["reason"] for entry in epochs for spill in entry["spills"]} == {policy}
    reports = [one for entry in epochs for one in entry["processors"]]
    assert max(one["resident_bytes"] for one in reports) <= MEMORY_BYTES
    assert max(one["peak_bytes"] for one in reports) <= MEMORY_BYTES
    rows = [
        [{"id": int(one), "k": int(keys[one])} for one in np.flatnonzero(tags == number)]
        for number in range(inputs)
    ]
    wanted = Counter(tuple(row["id"] for row in found) for found in join(rows, lambda _, row: row["k"]))
    assert Counter(sink.rows()) == wanted
    counters = engine.manifest.counters
    assert counters.results_cleanup > 0
    assert counters.results_runtime > 0 or inputs == 5
    assert counters.results_runtime + counters.results_cleanup == wanted.total()
