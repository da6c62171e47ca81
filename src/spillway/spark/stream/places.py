"""Where processors run: each on one executor, for as long as that lives.

A processor's state is in the memory of its host, so its task should run there. Spark is told the place of
each task before each epoch. If an executor is lost, its processors go to those that have the fewest; the
others stay. Executors that come later get processors only when others are lost, or after `resize`.

Known limit: a task whose executor is busy for longer than `spark.locality.wait` runs elsewhere for one epoch.
"""

import re
from collections import Counter

from pyspark.sql import SparkSession

_BLOCK_MANAGER = re.compile(r"BlockManagerId\(([^,]+), ([^,]+),")


def spread(before: list[str], executors: list[str], processors: int) -> list[str]:
    """An executor for each processor: the one that it had, if that still lives, or one that has few."""
    alive = set(executors)
    kept = [place if place in alive else None for place in before[:processors]]
    kept += [None] * (processors - len(kept))
    load = Counter(dict.fromkeys(executors, 0))
    load.update(place for place in kept if place is not None)
    chosen = []
    for place in kept:
        if place is None:
            place = min(executors, key=lambda executor: (load[executor], executors.index(executor)))
            load[place] += 1
        chosen.append(place)
    return chosen


class Places:
    """On `local[...]` no processor has a place: the driver's own process runs all tasks."""

    def __init__(self, spark: SparkSession) -> None:
        self._scala = spark.sparkContext._jsc.sc()
        self._is_local = self._scala.isLocal()
        self._hosts: dict[str, str] = {}
        self._chosen: list[str] = []

    def of(self, processors: int) -> list[str | None]:
        """The place of each processor, in Spark's notation."""
        executors = [] if self._is_local else self._alive()
        if not executors:
            return [None] * processors
        self._chosen = spread(self._chosen, executors, processors)
        return [f"executor_{self._hosts[executor]}_{executor}" for executor in self._chosen]

    def _alive(self) -> list[str]:
        found = str(self._scala.getExecutorIds().mkString(","))
        executors = sorted(found.split(","), key=lambda name: (len(name), name)) if found else []
        if not set(executors) <= self._hosts.keys():
            told = self._scala.env().blockManager().master().getMemoryStatus().keys().mkString(";")
            self._hosts = dict(_BLOCK_MANAGER.findall(str(told)))
        return [executor for executor in executors if executor in self._hosts]
