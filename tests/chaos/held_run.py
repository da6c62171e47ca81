"""Tests that start what tests start, and wait to be killed; `test_killed_run` runs them in a pytest."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kit.postgres import PostgresServers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READY = "SPILLWAY_HELD_READY"


def hold(directory: Path, *pids: int) -> None:
    """Tells the process that runs this test, those that are not among its descendants, and a directory that
    must go; then waits."""
    ready = Path(os.environ[READY])
    told = {"worker": os.getpid(), "others": pids, "directory": str(directory)}
    ready.with_suffix(".part").write_text(json.dumps(told))
    ready.with_suffix(".part").rename(ready)
    time.sleep(600)


def test_with_forks_and_sessions(quick_directory: Callable[[], Path]) -> None:
    if os.fork() == 0:
        time.sleep(600)
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600 & wait; sleep 600"], process_group=0)
    hold(quick_directory())


def test_with_spark_and_postgresql(spark: "SparkSession", postgres: PostgresServers) -> None:
    batches = spark.range(8, numPartitions=2).mapInArrow(lambda parts: parts, "id long")
    assert batches.toArrow().column("id").to_pylist() == list(range(8))
    hold(postgres(0).pgdata, postgres(0).get_pid())
