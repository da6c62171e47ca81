"""Random histories of the real engine: what all operators are put through, and how a failure is told.

A history is a dictionary of plain values. `drawn` draws the part that does not depend on the operator: limits
that bind, merges that take only some runs, budgets, spills, forced spills, turns, moves, other numbers of
processors, clean-ups, restarts and lost memory. A `Player` goes through it. If the answer is wrong, `told`
adds the history to the error, as a test that can be pasted.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from pprint import pformat
from typing import Any, ClassVar
from unittest import mock

import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from spillway.manager.budget import Budget
from spillway.manager.change import Change
from spillway.manager.cleanup import Cleaning, CleanupLimits
from spillway.manager.clock import Clock
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.manager.ordering import OrderMaker
from spillway.manager.relocation.protocol import RelocationLimits
from spillway.model.groups import all_groups, members, union
from spillway.policy.turns import TURNS
from spillway.state.graph.graph import Graph
from spillway.state.log.manifest import Manifest
from spillway.state.memory.tier import MemoryTier
from spillway.state.orders.orders import Limits, Orders
from spillway.state.orders.report import Report
from spillway.state.rows.compaction import CompactionLimits
from spillway.state.storage.storage import Storage
from spillway.testing import (
    ListSink,
    LocalCluster,
    ManualClock,
    ScriptedSpills,
    ScriptedSwaps,
    scripted_pushes,
)

History = dict[str, Any]
Check = Callable[[History, Path], None]

MOST_EPOCHS = 5000
"""A history that takes more epochs than this to end will not end."""
EVERYDAY_STEPS = 800
"""A few seconds; of 90 random histories of trees one took longer."""
TIGHT_MERGES = [1_800, 2_700, 4_000, 8_000]
"""Bytes of a merge: two or a few of the runs that small epochs write."""
BUDGETS = [12_000, 24_000, 60_000]
"""Budgets that a few images fill: an image takes a page of memory at least."""


def drawn(
    draw: st.DrawFn, groups: list[int], *, mask: int = 255, processors: int = 1, tight: bool = False
) -> History:
    """The part of a history that all operators share; groups are sampled, and `mask` has a bit for each.

    If it is `tight`, an epoch writes many runs, stops inside a row, and merges take only some of the runs.
    """
    tight = tight or draw(st.booleans())
    sometimes = st.one_of(st.just(0), st.integers(0, mask))
    script = st.lists(sometimes, max_size=10)
    request = st.tuples(
        st.sampled_from(["move", "nothing", "rebalance", "resize"]), st.integers(0, mask), st.integers(0, 3)
    )
    memory = draw(st.sampled_from([None, None, None, *BUDGETS, 16 << 20]))
    return {
        "groups": draw(st.sampled_from(groups)),
        "processors": draw(st.lists(st.integers(processors, 3), min_size=1, max_size=3)),
        "limits": Limits(
            rows=draw(st.sampled_from([8, 30, 1000] if tight else [1, 3, 10, 1000])),
            results=draw(st.sampled_from([1, 2, 3, 7] if tight else [20, 50, 10_000])),
            chunk_rows=draw(st.sampled_from([1, 2, 5, 1000])),
            block_rows=draw(st.sampled_from([1, 2, 6, 1000])),
            gather_rows=draw(st.sampled_from([1, 4, 1000])),
            chunk_bytes=draw(st.sampled_from([1, 2_000, 1 << 62])),
            gather_bytes=draw(st.sampled_from([1, 2_000, 1 << 62])),
            round_bytes=draw(st.sampled_from([16, 64, 400] if tight else [64, 2_000, 1 << 40])),
            state_bytes=draw(st.sampled_from([9_000, 30_000, 1 << 62, 1 << 62])),
            pending_bytes=draw(st.sampled_from([200, 1 << 20])),
            work=draw(st.sampled_from([200, 5_000, 1 << 40])),
            unwritten_bytes=draw(st.sampled_from([0, 200, 1 << 40])),
            range_bytes=draw(st.sampled_from([1, 3_000, 1 << 40])),
        ),
        "merging": CompactionLimits(
            fanout=draw(st.integers(2, 4)),
            max_bytes=draw(st.sampled_from(TIGHT_MERGES if tight else [2_700, 1 << 28])),
        ),
        "memory": memory,
        "rotation": draw(st.lists(st.booleans(), min_size=1, max_size=3)) if memory else [False],
        "gap": draw(st.sampled_from([0.0, 3600.0])),
        "turns": draw(st.sampled_from(TURNS)),
        "backlog": draw(st.sampled_from([0, 300, 1 << 30, None])),
        "spills": draw(st.one_of(script, st.none())) if memory else draw(script),
        "swaps": draw(st.one_of(st.none(), script)),
        "forced": draw(st.one_of(st.just([]), script)),
        "adapt": draw(st.sampled_from(["none", "none", "active-disk", "lazy-disk", "flux-memory"])),
        "requests": draw(st.lists(request, max_size=8)),
        "cleanups": draw(st.lists(st.integers(0, 3), max_size=8)),
        "load_bytes": draw(st.sampled_from([1, 100, 1 << 20])),
        "cleanup_limits": draw(st.lists(cleanup_limits(), max_size=4)),
        "deferred": draw(st.lists(st.sampled_from([False, False, True]), min_size=1, max_size=3)),
        "batch_rows": draw(st.sampled_from([None, 1, 3])),
        "forget": draw(st.booleans()),
        "drain": draw(st.booleans()),
        "lost": draw(st.lists(st.sampled_from([0, 0, 1, 2, 5]), max_size=12)),
    }


def cleanup_limits(most: int = 10_000) -> st.SearchStrategy[dict[str, int]]:
    """Limits of one clean-up epoch, with `most` results: the next one may have another amount of memory."""
    return st.fixed_dictionaries(
        {
            "range_bytes": st.sampled_from([1, 300, 800, 3_000, 1 << 40]),
            "work": st.sampled_from([5, 200, 1 << 40]),
            "results": st.sampled_from([results for results in (3, 20, 10_000) if results <= most]),
            "block_rows": st.sampled_from([1, 2, 1000]),
        }
    )


@dataclass(frozen=True, slots=True)
class WatchedCluster(LocalCluster):
    """Sees that every group is on one processor, and that runs are in order."""

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        groups = Counter(group for one in orders for group in members(one.groups))
        assert groups == Counter(range(self.graph.groups))
        for one in orders:
            assert not any(run.live & ~one.groups for run in one.runs)
            assert not any(run.live & one.groups for run in one.incoming)
            assert sorted(run.position for run in one.runs) == [run.position for run in one.runs]
        reports = LocalCluster.__call__(self, orders)
        for one in orders:
            allowed = one.groups | union(run.live for run in one.incoming)
            tier = MemoryTier(one.tier, self.graph.groups)
            assert not any(tier._open(path).contained & ~allowed for path in tier._images())
        return reports


def open_engine(
    directory: Path,
    config: EngineConfig,
    graph: Graph,
    sink: ListSink | Mapping[str, ListSink],
    clock: Clock | None = None,
) -> Engine:
    """An engine on the checkpoint in a directory, without a journal."""
    storage = Storage(str(directory / "checkpoint"))
    return Engine(config, graph, "q", storage, sink, Journal(None), clock)


class Player:
    """Puts engines on one checkpoint through a history, one after the other."""

    most_steps: ClassVar[int | None] = None
    """A history with more steps of operators than this is left out; everyday runs have no time for it."""

    def __init__(self, history: History, operator: Graph, directory: Path, results: int) -> None:
        """`results` are expected in all: with very many, an epoch may produce more than the history says."""
        self.history = history
        self.operator = operator
        self.directory = directory
        self.sinks = {name: ListSink(str(directory / f"staging{name}")) for name in operator.root_names}
        self.sink = self.sinks[operator.root_names[0]]
        """The only one, in graphs with one result."""
        limits = history["limits"]
        self.limits = replace(
            limits, results=max(limits.results, results // 100), work=max(limits.work, results)
        )
        self.engine: Engine
        self._batch_id = self._probed = 0
        self._spills = None if history["spills"] is None else ScriptedSpills(list(history["spills"]))
        self._swaps = None
        if history["swaps"] is not None:
            splittable = not operator.waits
            self._swaps = ScriptedSwaps(list(history["swaps"]), splittable=splittable)
        self._lost = list(history["lost"])
        self._forced = list(history["forced"])
        self._requests = list(history["requests"])
        self._cleanups = list(history["cleanups"])
        self._cleanup_limits: Iterator[dict[str, int]] = cycle(history.get("cleanup_limits") or [{}])
        self._ends: Manifest | None = None
        """Where the engine before ended."""

    def play(
        self, batches: Sequence[pa.RecordBatch | None], after: Callable[[int], None] = lambda number: None
    ) -> None:
        """Take in the batches, then produce all that is left; `after` is called with the number of each."""
        with (
            mock.patch.object(Budget, "__post_init__", lambda budget: None),  # any size will do
        ):
            lives = [min(size, self.history["groups"]) for size in self.history["processors"]]
            for life, processors in enumerate(lives):
                self._open(life, processors)
                while self._batch_id < (life + 1) * len(batches) // len(lives):
                    self._take(batches[self._batch_id])
                    after(self._batch_id - 1)
                self._ends = self.engine.manifest
            self._finish()

    def _open(self, life: int, processors: int) -> None:
        history = self.history
        config = EngineConfig(
            processors=processors,
            groups=history["groups"],
            tier=str(self.directory / "tier"),
            limits=self.limits,
            compaction=history["merging"],
            budget=None if history["memory"] is None else Budget(history["memory"]),
            rotation=history["rotation"][life % len(history["rotation"])],
            rotation_gap_seconds=history["gap"],
            rotation_turns=history["turns"],
            rotation_backlog_bytes=history["backlog"],
            adapt=history["adapt"],
            cleanup=CleanupLimits(epoch_seconds=0.0),
            deferred=history["deferred"][life % len(history["deferred"])] and self.operator.splittable,
            relocation=RelocationLimits(history["load_bytes"], restart_epochs=0, wait_epochs=2),
        )
        clock = ManualClock(tick_seconds=100.0)  # whatever waits for a time to pass has waited long enough
        self.engine = open_engine(self.directory, config, self.operator, self.sinks, clock)
        if self._ends is not None and self._ends.processor_count == processors:
            assert self.engine.manifest.placement == self._ends.placement  # what moved stays where it is
        controller = self.engine.controller
        if self._spills is not None:
            controller.spill = self._spills  # type: ignore[assignment]
        if self._swaps is not None:
            controller.rotation = self._swaps  # type: ignore[assignment]
        if history["forced"]:
            controller.relocation.policy = scripted_pushes(self._forced)

    def _take(self, batch: pa.RecordBatch | None) -> None:
        engine = self.engine
        while engine.has_cursor:
            self._clean(Cleaning.RESUMED)
        self._ask()
        self._epoch(batch, self._batch_id)
        assert engine.is_committed(self._batch_id)
        self._batch_id += 1
        if self.history["forget"]:
            shutil.rmtree(self.directory / "tier", ignore_errors=True)
        for _ in range(self._cleanups.pop() if self._cleanups else 0):
            if engine.has_expiring:
                self._clean(Cleaning.EXPIRING)
            elif engine.has_room:
                self._clean(Cleaning.RETURNING)
            elif engine.has_cleanup:
                self._clean(Cleaning.ALL)
        while self.history["drain"] and engine.has_backlog and not engine.has_cursor:
            self._ask()
            self._epoch(None, None)

    def _finish(self) -> None:
        engine = self.engine
        while True:
            if engine.has_cursor:
                self._clean(Cleaning.RESUMED)
            elif engine.has_pending or engine.has_waiting:
                self._ask()
                self._epoch(None, None, ending=True)
            elif engine.has_cleanup:
                self._clean(Cleaning.ALL)
            else:
                break
        assert engine.manifest.pending_rows == 0

    def _epoch(self, batch: pa.RecordBatch | None, batch_id: int | None, *, ending: bool = False) -> None:
        entry = self.engine.run_epoch(self._cluster(batch), batch_id, ending=ending)
        self._must_end(entry.sequence)
        self._probed += sum(processor.probed_rows for processor in entry.processors)
        counters = self.engine.manifest.counters
        if self.operator.is_one:  # results of lower joins wait, too
            dropped = counters.late_rows + counters.null_time_rows
            assert entry.pending_rows == counters.input_rows - dropped - self._probed

    def _clean(self, cleaning: Cleaning) -> None:
        limits, varied = OrderMaker._limits, next(self._cleanup_limits)

        def changed(maker: OrderMaker, processor: int, change: Change, *, clean: bool) -> Limits:
            return replace(limits(maker, processor, change, clean=clean), **varied)

        with mock.patch.object(OrderMaker, "_limits", changed):
            entry = self.engine.run_cleanup_epoch(self._cluster(), cleaning)
        self._must_end(entry.sequence)

    def _must_end(self, epochs: int) -> None:
        if self.most_steps is not None and epochs * len(self.operator.operators) > self.most_steps:
            reject()
        assert epochs < MOST_EPOCHS, "the history does not come to an end"

    def _cluster(self, batch: pa.RecordBatch | None = None) -> LocalCluster:
        lost = self._lost.pop() if self._lost else 0
        return WatchedCluster(self.operator, batch, self.history["batch_rows"], lost)

    def _ask(self) -> None:
        """What users ask for between epochs: moves of groups, another number of processors."""
        if not self._requests:
            return
        kind, groups, number = self._requests.pop()
        manifest, controller = self.engine.manifest, self.engine.controller
        if kind == "move":
            mask = groups & all_groups(len(manifest.placement))
            controller.move(manifest, mask, number % manifest.processor_count)
        elif kind == "rebalance":
            controller.rebalance(manifest)
        elif kind == "resize":
            controller.resize(manifest, min(number + 1, self.history["groups"]))


def told(check: Check, history: History, directory: Path) -> None:
    """Check a history in an empty directory; an error gets it as a note."""
    try:
        check(history, directory)
    except HypothesisException:
        raise
    except Exception as error:
        error.add_note(pasted(check.__name__, history))
        raise
    finally:
        shutil.rmtree(directory)


def pasted(check: str, history: History) -> str:
    """The history as a test for the file that has its check."""
    body = pformat(history, width=100, sort_dicts=False).replace("\n", "\n    ")
    head = "def test_a_history_that_failed(tmp_path: Path) -> None:"
    return f"This test fails alike:\n\n{head}\n    history = {body}\n    {check}(history, tmp_path)\n"
