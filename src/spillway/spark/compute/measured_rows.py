"""Measured rows and hash tables of each segment of a statement, from the metrics of Spark's SQL executions.

The plan graph is walked together with the tree: the joins of a segment are connected by their probing (first)
side, the last join at the top, and what a join builds is its second side. Known limit: Spark's store is not a
public interface. Metrics that it has dropped, and those of an exchange that Spark reuses, are unknown.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from spillway.compute import Input, Segment

ROWS_METRIC = "number of output rows"
TABLE_METRICS = {"BroadcastExchange": "data size", "ShuffledHashJoin": "data size of build side"}
TIME_METRICS = ("time to collect", "time to build", "time to broadcast")
WAIT_MS = 10_000
ROOT = -1
"""Stands above the root of a plan."""
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Measured:
    """One segment: rows after each of its joins, bytes of its hash tables, and, if it runs inside a
    statement, the seconds until its own hash table was built (None: not yet, or unknown)."""

    step_rows: tuple[int | None, ...]
    table_bytes: int = 0
    seconds: float | None = None


@dataclass(slots=True)
class _PlanNode:
    name: str
    metrics: dict[str, str] = field(default_factory=dict)
    children: list[int] = field(default_factory=list)


def measure(
    spark: SparkSession, description: str, tree: Segment, kept: Collection[Segment], *, wait: bool = True
) -> dict[Segment, Measured]:
    """The metrics of the last execution with this description; `kept` segments ran in earlier statements."""
    if wait:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(WAIT_MS)
    walk = _Walk(_plan(spark, description), kept, spark.sparkContext.defaultParallelism)
    walk.segment(tree, ROOT, None)
    return walk.found


class _Walk:
    def __init__(self, nodes: dict[int, _PlanNode], kept: Collection[Segment], processors: int) -> None:
        self._nodes, self._kept, self._processors = nodes, kept, processors
        self.found: dict[Segment, Measured] = {}

    def segment(self, segment: Segment, start: int | None, seconds: float | None) -> None:
        rows: list[int | None] = []
        table_bytes = 0
        at = start
        for build in reversed(segment.builds):
            at, _ = self._descend(at)
            if at is None:
                rows.append(None)
                self._input(build, None)
                continue
            join = self._nodes[at]
            rows.append(_count(join, ROWS_METRIC))
            sides = [*join.children, None, None]
            table_bytes += self._held_at_a_time(join)
            table_bytes += self._input(build, sides[1])
            at = sides[0]
        self.found[segment] = Measured(tuple(reversed(rows)), table_bytes, seconds)
        self._input(segment.probe, at)

    def _held_at_a_time(self, join: _PlanNode) -> int:
        """Bytes of a partitioned table: as many of its parts as there are processors are in memory."""
        total = _count(join, TABLE_METRICS["ShuffledHashJoin"]) or 0
        largest = _largest(join.metrics.get(TABLE_METRICS["ShuffledHashJoin"], ""))
        return total if largest is None else min(total, round(largest * self._processors))

    def _input(self, side: Input, start: int | None) -> int:
        """The bytes of the replicated hash table of one side; a segment inside is walked, too."""
        below, passed = self._descend(start)
        exchange = next((node for node in passed if node.name == "BroadcastExchange"), None)
        if isinstance(side, Segment) and side not in self._kept:
            self.segment(side, below, None if exchange is None else _seconds(exchange))
        if exchange is None:
            return 0
        return _count(exchange, TABLE_METRICS["BroadcastExchange"]) or 0

    def _descend(self, start: int | None) -> tuple[int | None, list[_PlanNode]]:
        """The next join below, or None, and the operators on the way."""
        passed: list[_PlanNode] = []
        at = start
        while at is not None and at in self._nodes:
            node = self._nodes[at]
            if node.name.endswith("HashJoin"):
                return at, passed
            passed.append(node)
            at = node.children[0] if node.children else None
        return None, passed


def _plan(spark: SparkSession, description: str) -> dict[int, _PlanNode]:
    """The operators of the last execution with this description that joins; children are in the plan's
    order."""
    store = spark._jsparkSession.sharedState().statusStore()
    found = [
        execution.executionId()
        for execution in _items(store.executionsList())
        if execution.description() == description
    ]
    for number in reversed(found):
        nodes = _nodes(store, number)
        if any(node.name.endswith("HashJoin") for node in nodes.values()):
            return nodes
    return {}


def _nodes(store: Any, number: int) -> dict[int, _PlanNode]:
    values = store.executionMetrics(number)
    graph = store.planGraph(number)
    nodes: dict[int, _PlanNode] = {}
    for operator in _items(graph.allNodes()):
        made = nodes[int(operator.id())] = _PlanNode(str(operator.name()))
        for metric in _items(operator.metrics()):
            value = values.get(metric.accumulatorId())
            if value.isDefined():
                made.metrics[str(metric.name())] = str(value.get())
    below: set[int] = set()
    for edge in _items(graph.edges()):
        nodes[int(edge.toId())].children.append(int(edge.fromId()))
        below.add(int(edge.fromId()))
    roots = [key for key, node in nodes.items() if key not in below and node.children]
    nodes[ROOT] = _PlanNode("root", children=roots[:1])
    return nodes


def _count(node: _PlanNode, name: str) -> int | None:
    """A join or table without rows has no metric: that counts as zero."""
    if name in node.metrics:
        found = _number(node.metrics[name])
        return None if found is None else round(found)
    return 0


def _seconds(exchange: _PlanNode) -> float | None:
    times = [_number(exchange.metrics[name]) for name in TIME_METRICS if name in exchange.metrics]
    known = [seconds for seconds in times if seconds is not None]
    return sum(known) if len(known) == len(TIME_METRICS) else None


def _number(text: str) -> float | None:
    """`1,234`, or with a unit, `12.5 MiB` (of several tasks: the total comes first, on a second line)."""
    words = text.splitlines()[-1].split("(")[0].replace(",", "").split()
    try:
        return float(words[0]) * (_UNITS[words[1]] if len(words) > 1 else 1)
    except (ValueError, IndexError, KeyError):
        return None


def _largest(text: str) -> float | None:
    """Of `17.0 MiB (512.0 KiB, 1.0 MiB, 2.0 MiB (stage 3.0: task 9))` the last size: that of one task."""
    inside = text.splitlines()[-1].split("(")[1:2] if text else []
    return _number(inside[0].split(",")[-1]) if inside else None


def _items(sequence: Any) -> Iterator[Any]:
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()
