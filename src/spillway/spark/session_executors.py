"""Waits until a cluster's executors are there, because the anchor must not be built over half of them.

Known limit: executors are counted as Spark's status tracker lists them, minus the driver; one that registers
and dies at once is counted until Spark notices.
"""

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from spillway.errors import SessionError

_POLL_SECONDS = 0.1


def count_executors(spark: SparkSession) -> int:
    """The executors that are registered now; 0 for `local[...]`, where the driver does the work itself."""
    status = spark.sparkContext._jsc.sc().statusTracker()  # the only count that needs no web UI
    return max(0, len(status.getExecutorInfos()) - 1)


def wait_for_executors(
    spark: SparkSession,
    count: int,
    timeout_seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Returns the number registered once it is at least `count`; raises `SessionError` after the timeout."""
    deadline = clock() + timeout_seconds
    while (registered := count_executors(spark)) < count:
        if clock() >= deadline:
            raise SessionError(
                f"{registered} of {count} executors registered at {spark.sparkContext.master} within"
                f" {timeout_seconds:g} s: check that its workers run and have free cores and memory,"
                " or ask for fewer"
            )
        time.sleep(_POLL_SECONDS)
    return registered
