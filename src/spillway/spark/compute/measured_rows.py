"""Rows that each join of a segment gave, from the metrics that Spark's SQL executions leave behind.

Spark numbers the nodes of a plan from its root, the left side of a join first; segments are built with the
probing side on the left, so the first joins of a plan are those of the segment, last one first. Known limit:
the store is Spark's own and not a public interface; where it has lost an execution, rows are unknown (None).
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

ROWS_METRIC = "number of output rows"
TABLE_METRIC = "data size"
WAIT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one SQL execution: rows after each join, in the segment's order, and bytes of replicated tables."""

    step_rows: tuple[int | None, ...]
    table_bytes: int


def measure(spark: SparkSession, description: str, joins: int) -> Measured:
    """What the last execution with this description gave."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(WAIT_MS)
    store = spark._jsparkSession.sharedState().statusStore()
    found = [one for one in _items(store.executionsList()) if one.description() == description]
    if not found:
        return Measured((None,) * joins, 0)
    number = found[-1].executionId()
    values = store.executionMetrics(number)
    named = [(str(node.name()), node) for node in _items(store.planGraph(number).allNodes())]
    joined = sorted((int(node.id()), node) for name, node in named if name.endswith("HashJoin"))
    rows = [_metric(node, ROWS_METRIC, values) for _, node in joined]
    tables = [_metric(node, TABLE_METRIC, values) for name, node in named if name == "BroadcastExchange"]
    steps = (*reversed(rows[:joins]), *((None,) * (joins - len(rows))))
    return Measured(steps, sum(one or 0 for one in tables))


def _metric(node: Any, name: str, values: Any) -> int | None:
    for metric in _items(node.metrics()):
        if metric.name() == name:
            found = values.get(metric.accumulatorId())
            return _number(str(found.get())) if found.isDefined() else 0
    return None


def _number(text: str) -> int | None:
    """`1,234`, or a size such as `12.5 MiB` (of several tasks: the total comes first, on a second line)."""
    words = text.splitlines()[-1].split("(")[0].replace(",", "").split()
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    try:
        return round(float(words[0]) * (units[words[1]] if len(words) > 1 else 1))
    except (ValueError, IndexError, KeyError):
        return None


def _items(sequence: Any) -> list[Any]:
    iterator = sequence.iterator()
    found = []
    while iterator.hasNext():
        found.append(iterator.next())
    return found
