"""Starts Python workers beside whatever a new session does first.

A worker takes a second or two to start and to import what tasks need. Meanwhile the driver opens sources and
binds the view, for which Spark runs no Python.
"""

import logging
import threading
from collections.abc import Iterable

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

_LOG = logging.getLogger(__name__)


def warm_workers(context: SparkContext) -> threading.Thread:
    """Begin; nobody has to wait for the end."""
    thread = threading.Thread(target=_warm, args=(context,), name="spillway-warm", daemon=True)
    thread.start()
    return thread


def _warm(context: SparkContext) -> None:
    tasks = context.defaultParallelism
    try:
        context.parallelize(range(tasks), tasks).mapPartitions(_ready).count()
    except (PySparkException, Py4JError, OSError, AttributeError) as error:
        # The session was stopped at once; if workers cannot start, the first epoch says so.
        _LOG.info("Python workers were not started ahead: %s", str(error).splitlines()[0])


def _ready(numbers: Iterable[int]) -> Iterable[int]:
    import spillway.spark.worker  # noqa: F401 - what tasks of epochs need

    return numbers
