"""A processor in a process of its own, which does what a Spark worker does for its task, and nothing else.

For each line of its input, a pickled request, it runs one step and answers with its message. It reads parcels
one at a time, from files here, and writes results as Parquet. So nothing but the step takes its memory; the
engine that gives the orders is elsewhere.
"""

import gc
import pickle
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pandas  # noqa: F401 - as in Spark workers

from kit.bounded_plan import one_processor
from spillway.spark.worker.processor import SPOOL_BYTES
from spillway.state.graph import Graph, Inbox, LevelMessage, StageStep, consistent_reports
from spillway.state.orders import Orders, Report
from spillway.state.step import TaskAttempt


class BoundedWorker:
    """The caller's side: starts the process, and ends it."""

    def __init__(self, graph: Graph, environment: dict[str, str]) -> None:
        self.graph = graph
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kit.bounded_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._send(graph)

    def __enter__(self) -> "BoundedWorker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    @property
    def pid(self) -> int:
        return self._process.pid

    def step(self, orders: Orders, parcels: Sequence[Path]) -> LevelMessage:
        self._send((orders, tuple(parcels)))
        assert self._process.stdout is not None
        message: LevelMessage = pickle.load(self._process.stdout)
        return message

    def _send(self, request: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()


@dataclass(frozen=True, slots=True)
class ParcelCluster:
    """Executes the epochs of one processor in a worker."""

    worker: BoundedWorker
    parcels: tuple[Path, ...] = ()

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        (part,) = orders
        return consistent_reports(self.worker.graph, {0: self.worker.step(part, self.parcels)})


def serve() -> None:
    graph: Graph = pickle.load(sys.stdin.buffer)
    routing = one_processor(graph)
    gc.freeze()
    while True:
        try:
            orders, parcels = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        frames = (path.read_bytes() for path in parcels)
        spool_bytes = min(SPOOL_BYTES, orders.limits.round_bytes)
        inbox = Inbox(frames, len(parcels), orders.processor, spool_bytes)
        attempt = TaskAttempt("localhost", "local", uuid.uuid4().hex[:8])
        message = StageStep(routing, 0, orders, attempt).run(inbox, None)
        pickle.dump(message, sys.stdout.buffer)
        sys.stdout.flush()
        del inbox, frames, orders, message
        gc.collect()  # as PySpark does after each task


if __name__ == "__main__":
    serve()
