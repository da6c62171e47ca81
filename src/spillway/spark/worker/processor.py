"""The Python task of a processor: Arrow batches in, one commit row out.

The functions made here are pickled with the orders of all processors; a task picks its own. They hold no
state of their own, so any Python worker of a host can serve any processor.
"""

import gc
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import pandas  # noqa: F401 - Arrow imports it with the first array: half a second inside some step
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from spillway.errors import StateError
from spillway.model import from_text, to_text
from spillway.state.graph import FileBarrier, Graph, LevelMessage, TreeStep, placement_of, run_step, together
from spillway.state.memory import TierDirectory
from spillway.state.orders import Orders
from spillway.state.step import Operator, TaskAttempt
from spillway.state.storage import Storage

COMMIT_SCHEMA = StructType([StructField("processor", IntegerType()), StructField("report", StringType())])
_COMMIT_ARROW = pa.schema([("processor", pa.int32()), ("report", pa.string())])

Batches = Iterator[pa.RecordBatch]


def by_partition(orders: Sequence[Orders], operator: Operator) -> Callable[[Batches], Batches]:
    """For `mapInArrow`, where the number of the partition is the number of the processor."""

    def task(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        yield _commit_row(orders[context.partitionId()], operator, batches)

    return task


def by_level(orders: Sequence[Orders], tree: Graph, levels: Sequence[int]) -> Callable[[Batches], Batches]:
    """The same for some levels of a tree: rows or messages in, messages out, by target."""
    placement = placement_of(orders)

    def task(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        mine = orders[context.partitionId()]
        step = TreeStep(tree, mine, placement, len(orders), _here(mine))
        inbox = LevelMessage() if levels[0] == 0 else together(_messages(batches))
        sent = step.run(levels[0], inbox, batches)
        for level in levels[1:]:  # all that was sent is for here
            sent = step.run(level, sent[mine.processor], ())
        for _ in batches:
            pass
        targets = sorted(sent) if levels[-1] < max(tree.levels) else [mine.processor]
        yield _commit_rows({target: to_text(sent[target]) for target in targets})

    return task


def all_levels(orders: Sequence[Orders], tree: Graph, name: str) -> Callable[[Batches], Batches]:
    """The same for a whole tree in one stage, whose tasks all run at once; `name` is this run's."""
    placement = placement_of(orders)

    def task(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        mine = orders[context.partitionId()]
        step = TreeStep(tree, mine, placement, len(orders), _here(mine))
        barrier = FileBarrier(Storage(mine.state), name, mine.processor, len(orders))
        sent = step.run(0, LevelMessage(), batches)
        for _ in batches:
            pass
        for level in range(1, max(tree.levels) + 1):
            inbox = barrier.exchange(level, {target: to_text(message) for target, message in sent.items()})
            sent = step.run(level, together(from_text(LevelMessage, text) for text in inbox), ())
        yield _commit_rows({mine.processor: to_text(sent[mine.processor])})

    return task


def _messages(batches: Batches) -> Iterator[LevelMessage]:
    for batch in batches:
        for text in batch.column("report").to_pylist():
            yield from_text(LevelMessage, text)


@cache
def _keep_modules() -> None:
    """Once in each worker: exclude imported modules from garbage collection.

    PySpark collects garbage after each task; looking through the objects of all modules took 75 ms each time.
    """
    gc.freeze()


def _here(orders: Orders) -> TaskAttempt:
    _keep_modules()
    arrive(orders.state, orders.staging, orders.tier)
    return TaskAttempt(socket.gethostname(), executor_name(), uuid.uuid4().hex[:12])


@lru_cache(maxsize=64)
def arrive(state: str, staging: str | None, tier: str) -> None:
    """Once in each worker: an executor that registered after the start was not asked by `host_check`.

    It must see the driver's fencing token, or it would begin a state of its own on a path that is not shared.
    """
    query, token = Path(tier).parent.parent, Path(tier).parent.name
    seen = [(state, f"owners/{token}.json")]
    if staging is not None and Storage(staging).is_local:
        seen.append((staging, ""))
    for root, name in seen:
        if not Storage(root).exists(name):
            raise StateError(
                f"host {socket.gethostname()} does not see what the driver wrote to {root}: all hosts must "
                "share it; use a directory that is mounted on every host, or an object store"
            )
    TierDirectory(str(query), in_memory=True).join(int(executor_name()))


def _commit_row(orders: Orders, operator: Operator, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    report = run_step(orders, operator, _here(orders), batches)
    for _ in batches:  # Spark reuses only a worker that has read its input to the end
        pass
    return _commit_rows({orders.processor: to_text(report)})


def _commit_rows(texts: Mapping[int, str]) -> pa.RecordBatch:
    """A row for each processor that is told something, or that reports."""
    arrays = [pa.array(list(texts), pa.int32()), pa.array(list(texts.values()))]
    return pa.RecordBatch.from_arrays(arrays, schema=_COMMIT_ARROW)


def executor_name() -> str:
    """The executor that this task runs in: its JVM's process id (a worker is forked by a daemon of it)."""
    daemon = os.getppid()
    try:
        fields = Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return str(daemon)
    return fields[1]
