"""Runs a Python function on every executor of a session, at least once on each.

Spark spreads tasks over free executors, but promises nothing. So there are two tasks for each executor, and
all of them end together at the end of a half second. While an executor is missing, all are asked again.
"""

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spillway.errors import SessionError
from spillway.spark.worker import executor_name

WAVE_SECONDS = 0.5
"""Tasks end together, at multiples of this: an executor that ended first would take two."""
ATTEMPTS = 10
_SCHEMA = "place string, answer string"


def on_every_executor(
    spark: SparkSession, executors: int, function: Callable[[str], str], timeout_seconds: float
) -> list[str]:
    """The answers of `function(executor)`, one of each executor. `SessionError` if some stay away."""
    answers: dict[str, str] = {}
    deadline = time.monotonic() + timeout_seconds
    for _ in range(ATTEMPTS):
        tasks = spark.range(0, executors * 2, 1, executors * 2).mapInArrow(_asking(function), _SCHEMA)
        tag = f"spillway-{uuid.uuid4().hex}"
        timer = threading.Timer(max(0.0, deadline - time.monotonic()), spark.interruptTag, (tag,))
        timer.daemon = True
        spark.addTag(tag)
        timer.start()
        try:
            answers |= {row["place"]: row["answer"] for row in tasks.collect()}
        except (PySparkException, Py4JError) as error:
            if time.monotonic() < deadline:
                raise
            raise SessionError(
                f"{executors} executors did not answer within {timeout_seconds:g} s; check that they have "
                "free cores"
            ) from error
        finally:
            timer.cancel()
            spark.removeTag(tag)
        if len(answers) >= executors:
            return list(answers.values())
    raise SessionError(
        f"only {len(answers)} of {executors} executors answered; check that all have free cores"
    )


def wait_for_wave() -> None:
    """Until the end of the present wave, or of the next if that is near."""
    left = WAVE_SECONDS - time.time() % WAVE_SECONDS
    time.sleep(left if left > WAVE_SECONDS / 2 else left + WAVE_SECONDS)


def _asking(function: Callable[[str], str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        executor = executor_name()
        answer = function(executor)
        wait_for_wave()
        place = f"{socket.gethostname()}:{executor}"
        yield pa.RecordBatch.from_pydict({"place": [place], "answer": [answer]})

    return task
