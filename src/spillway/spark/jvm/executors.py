"""The executors of a session: waits until they are registered, and checks one Python worker.

Settings alone do not say which Python the executors start: a session passes only if a worker runs the
driver's Python (major and minor), has the driver's PyArrow, and can import Spillway. Known limit: one worker
answers for all, so machines that differ go unnoticed.

Processors must not be spread over half of the executors. Known limit: the count is that of Spark's status
tracker, minus the driver; an executor that dies at once is counted until Spark notices.
"""

import sys
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spillway.errors import SessionError


def check_workers(spark: SparkSession) -> None:
    """Runs one task; raises `SessionError` that names the setting to change."""
    advice = f"set PYSPARK_PYTHON to {sys.executable} before the session is built"
    try:
        answer = (
            spark.range(1, numPartitions=1).mapInArrow(_answer, "python string, pyarrow string").collect()
        )
    except (PySparkException, Py4JError) as error:
        raise SessionError(
            f"the session's Python workers cannot run Spillway ({_reason(error)}): {advice}"
        ) from error
    theirs = (answer[0]["python"], answer[0]["pyarrow"])
    ours = _versions()
    if theirs != ours:
        raise SessionError(
            f"the session's Python workers have Python {theirs[0]} with PyArrow {theirs[1]}, the driver has"
            f" {ours[0]} with {ours[1]}: {advice}"
        )


def _versions() -> tuple[str, str]:
    return f"{sys.version_info.major}.{sys.version_info.minor}", str(pa.__version__)


def _answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on the worker, which finds this function by importing Spillway."""
    for _ in batches:
        python, arrow = _versions()
        yield pa.RecordBatch.from_pydict({"python": [python], "pyarrow": [arrow]})


def _reason(error: Exception) -> str:
    """The last line of a worker's traceback, or the condition that Spark named."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [
        line for line in lines if line.startswith(("ModuleNotFoundError", "ImportError", "pyspark.errors"))
    ]
    return causes[-1] if causes else lines[0]


_POLL_SECONDS = 0.1


def count_executors(spark: SparkSession) -> int:
    """The number of registered executors; 0 for `local[...]`, where the driver does the work."""
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
