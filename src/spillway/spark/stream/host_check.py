"""Asks the executors of a session whether they can serve a query, and removes its images from their hosts.

On `local[...]` there is nobody to ask: the driver does the work itself.
"""

import json
import logging
from dataclasses import asdict

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spillway.errors import SessionError
from spillway.spark.jvm import count_executors
from spillway.spark.stream.every_executor import on_every_executor
from spillway.state.memory import HostAnswer, HostProbe, TierDirectory

_LOG = logging.getLogger(__name__)
ASK_SECONDS = 120.0
REMOVE_SECONDS = 20.0


def check_hosts(spark: SparkSession, probe: HostProbe) -> None:
    """Raises an error that names the hosts that do not share the paths, or have too little memory."""
    executors = count_executors(spark)
    if not executors:
        return

    def ask(executor: str) -> str:
        return json.dumps(asdict(probe.answer(executor)))

    answers: list[HostAnswer] = []
    try:
        probe.begin()
        for text in on_every_executor(spark, executors, ask, ASK_SECONDS):
            fields = json.loads(text)
            answers.append(HostAnswer(**fields | {"faults": tuple(fields["faults"])}))
        probe.judge(answers)
    finally:
        probe.end()


def remove_images(spark: SparkSession, tier: TierDirectory) -> None:
    """Remove a query's images from all executor hosts; a host out of reach is left to the next claim."""
    executors = count_executors(spark) if spark.sparkContext._jsc is not None else 0
    if not executors:
        return

    def remove(_: str) -> str:
        tier.remove()
        return ""

    try:
        on_every_executor(spark, executors, remove, REMOVE_SECONDS)
    except (PySparkException, Py4JError, SessionError) as error:
        _LOG.warning("images in %s may be left on executor hosts: %s", tier.path, str(error).splitlines()[0])
