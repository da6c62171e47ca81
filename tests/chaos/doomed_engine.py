"""Lives of a query without Spark, each a process of its own that may kill itself: see `doom`.

The query, its engine, steps, state and sinks are the real ones; batches come from Parquet files, one per
stream and epoch, and tasks run in the driver. It reads a life per line, as JSON, and writes how each ended:
its exit code, negative for a signal. A life is forked from a process that has everything imported and no
thread, so that it begins at once.

Usage: doomed_engine.py < LIVES
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from doom import arm, force_moves

from spillway.manager.budget import Budget
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import FILE_NAME, Journal
from spillway.manager.relocation.protocol import RelocationLimits
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.operators.tree import Leaf, TreePlan
from spillway.plan.operators.tree_layout import KeyHash, LeafColumn, leaf_symbols
from spillway.plan.rules.planner import plan_view
from spillway.spark.sinks.factory import open_sink
from spillway.spark.stream.input import InputBatch, OnBatch
from spillway.spark.stream.query import Query
from spillway.state.binding.tree import bind_tree
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.orders.orders import Limits
from spillway.state.step.operator import HASH_WIRE_COLUMN, TAG_COLUMN, WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import LocalCluster

GROUPS = 16
TYPES = {"k": pa.int64(), "j": pa.int64(), "id": pa.int64(), "p": pa.string()}
MIX = np.uint64(0x9E3779B97F4A7C15)
Sources = dict[str, pa.Table]


def hashed(column: pa.ChunkedArray) -> pa.Array:
    return pa.array((column.to_numpy().astype(np.uint64) * MIX).view(np.int64))


def tagged(parts: list[tuple[pa.Array, dict[str, Any]]]) -> pa.RecordBatch:
    """One batch of the rows of all inputs: per input their hashes and their slots."""
    tables = [
        pa.table({TAG_COLUMN: pa.array(np.full(len(keys), tag, np.int8)), HASH_WIRE_COLUMN: keys} | slots)
        for tag, (keys, slots) in enumerate(parts)
    ]
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    return table.to_batches()[0]


class Join:
    """Streams a, b and c on `k`; all ids, and the payload of a."""

    def __init__(self) -> None:
        columns = (("id", "p"), ("id",), ("id",))
        join = JoinOperator(
            inputs=tuple(
                WireInput(name, of, ("s0", "s1")[: len(of)]) for name, of in zip("abc", columns, strict=True)
            ),
            outputs=(*(ColumnRef(number, 0) for number in range(3)), ColumnRef(0, 1)),
            residual=None,
            key_columns=((),) * 3,
            groups=GROUPS,
            result_schema=pa.schema([*((f"{name}_id", pa.int64()) for name in "abc"), ("p", pa.string())]),
        )
        self.graph = Graph.of_one(join)

    def wire(self, sources: Sources) -> pa.RecordBatch:
        parts = [(hashed(sources[name]["k"]), {"s0": sources[name]["id"]}) for name in "abc"]
        parts[0][1]["s1"] = sources["a"]["p"]
        return tagged(parts)


class Tree:
    """A plan of several joins, on bigint keys."""

    def __init__(self, sql: str) -> None:
        columns = tuple(Column(name, "string" if name == "p" else "bigint") for name in TYPES)
        plan = plan_view(View.sql(sql), dict.fromkeys("abcd", columns))
        assert isinstance(plan, TreePlan)
        self.plan = plan
        exact = [True] * len(plan.joins)
        self.symbols = [leaf_symbols(plan, exact, leaf) for leaf in range(len(plan.inputs))]
        slots = [tuple(f"s{leaf}_{n}" for n in range(len(of))) for leaf, of in enumerate(self.symbols)]
        self.graph = bind_tree(plan, exact, self._type, slots, GROUPS)

    def wire(self, sources: Sources) -> pa.RecordBatch:
        parts = []
        for leaf, symbols in enumerate(self.symbols):
            source = sources[self.plan.inputs[leaf].name]
            join = next(one for one in self.plan.joins if Leaf(leaf) in one.children)
            slots = {
                f"s{leaf}_{number}": hashed(source[self._key(leaf, symbol.key_class)])
                if isinstance(symbol, KeyHash)
                else source[self._column(symbol)]
                for number, symbol in enumerate(symbols)
            }
            parts.append((hashed(source[self._key(leaf, join.classes[0])]), slots))
        return tagged(parts)

    def _key(self, leaf: int, key_class: int) -> str:
        return self._name(self.plan.inputs[leaf].keys[self.plan.key_classes[leaf].index(key_class)])

    def _column(self, symbol: Any) -> str:
        return self._name(self.plan.inputs[symbol.leaf].columns[symbol.column].expression)

    def _name(self, expression: str) -> str:
        return expression.replace("`", "").rsplit(".", 1)[-1]

    def _type(self, symbol: Any) -> pa.DataType:
        assert isinstance(symbol, LeafColumn)
        return TYPES[self._column(symbol)]


@dataclass(slots=True)
class Files:
    """The input: batch n is the n-th file of each stream, from the first one on."""

    root: Path
    wire: Callable[[Sources], pa.RecordBatch]
    is_cut: bool = False

    def run(self, on_batch: OnBatch) -> None:
        names = sorted(path.name for path in (self.root / "a").iterdir())
        for number, name in enumerate(names):
            streams = (path for path in self.root.iterdir() if path.is_dir())
            rows: Any = self.wire({path.name: pq.read_table(path / name) for path in streams})
            on_batch(InputBatch(number, rows))


def live(life: dict[str, Any]) -> None:
    """From the start of a query to its end, or to its doom."""
    if life.get("moves"):
        force_moves()
    arm(*life["doom"])
    root = Path(life["root"])
    view: Any = Tree(life["tree"]) if "tree" in life else Join()
    memory_bytes = life.get("memory_bytes")
    config = EngineConfig(
        groups=GROUPS,
        tier=str(root / "tier"),
        budget=None if memory_bytes is None else Budget(memory_bytes),
        limits=Limits(**life["limits"]),
        relocation=RelocationLimits(load_bytes=life.get("load_bytes", 8 << 20)),
        **life["run"],
    )
    sink = open_sink(life["sink"], str(root / "out"), checkpoint_dir=str(root / "state"))
    sink.prepare("q", view.graph.result_schema())
    with Journal(root / "state" / FILE_NAME) as journal:
        storage = Storage(str(root / "state"))
        engine = Engine(config, view.graph, "q", storage, sink, journal)
        epoch: Any = LocalCluster(view.graph)  # has what the query needs of a Spark epoch, as `Files` has
        files: Any = Files(root / "streams", view.wire)
        query = Query("q", engine, files, epoch, sink.close, budget_is_hard=True, clean_at_end=True)
        query.awaitTermination()
    counters = engine.manifest.counters
    results = {"runtime": counters.results_runtime, "cleanup": counters.results_cleanup}
    (root / "summary.json").write_text(json.dumps(results | {"spills": counters.spills}))


if __name__ == "__main__":
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            os.setpgid(0, 0)  # which it kills
            try:
                live(json.loads(line))
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
