"""Where processors run: each on one executor, for as long as that lives.

A processor's state is in the memory of its host, so its task should run there. Spark is told the place of
each task before each epoch. If an executor is lost, its processors go to those that have the fewest; the
others stay. Executors that come later get processors only when others are lost, or after `resize`.

Known limit: a task whose executor is busy for longer than `spark.locality.wait` runs elsewhere for one epoch.
"""

import time
from collections import Counter

from pyspark.sql import SparkSession

from spillway.spark.jvm import elements

WAIT_SECONDS, LOOK_SECONDS = 5.0, 0.01
"""Spark knows the host of a new executor a moment after its name."""


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
        deadline = time.monotonic() + WAIT_SECONDS
        while not set(executors) <= self._hosts.keys() and time.monotonic() < deadline:
            told = elements(self._scala.statusStore().executorList(True))
            hosts = {str(known.id()): str(known.hostPort()).rpartition(":")[0] for known in told}
            self._hosts = {executor: host for executor, host in hosts.items() if host}
            time.sleep(LOOK_SECONDS)
        return [executor for executor in executors if executor in self._hosts]
