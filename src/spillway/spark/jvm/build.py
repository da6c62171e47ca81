"""Builds, adopts and ends Spark sessions; the one place that touches the process environment and the gateway.

Invariant: a session that leaves here binds to loopback unless its master is elsewhere, runs this Python on
its executors, and has all promised executors registered. A user's settings win over Spillway's.
Known limit: a JVM lives as long as its Python process or until `stop_session`; settings that only a starting
JVM reads (heap, JVM options) have no effect on a session built while an older JVM is still up.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from types import MappingProxyType

import psutil
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spillway.detail_log import DetailLog
from spillway.errors import SessionError
from spillway.spark.jvm.defaults import default_settings
from spillway.spark.jvm.environment import prepare_spark_home, session_environment
from spillway.spark.jvm.executors import check_workers, wait_for_executors
from spillway.spark.jvm.java import find_java
from spillway.spark.jvm.master import DEFAULT_MASTER, Master, parse_master, require_reachable
from spillway.spark.jvm.output import JvmOutput, keep_output
from spillway.spark.jvm.sockets import socket_settings

EXECUTOR_TIMEOUT_SECONDS = 120.0
STOP_TIMEOUT_SECONDS = 20.0

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})

# What a user's session must have: (value, Spark's default). Speculation runs a processor in two places.
_REQUIRED_SETTINGS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "spark.sql.execution.arrow.pyspark.enabled": ("true", "true"),
        "spark.speculation": ("false", "false"),
    }
)


def build_session(
    settings: Mapping[str, str] = _NO_SETTINGS, *, app_name: str = "spillway", verbose: bool = False
) -> SparkSession:
    """A session with Spillway's defaults below the user's `settings`; the active session if its master is
    the same. What its JVM says is kept for the details of failures; with `verbose` it is also shown."""
    master = parse_master(settings.get("spark.master", DEFAULT_MASTER))
    active = SparkContext._active_spark_context
    if active is not None:
        return _reuse(active, settings)
    if os.environ.get("SPARK_REMOTE"):
        raise SessionError(
            "SPARK_REMOTE is set, but Spillway needs a classic Spark session: unset SPARK_REMOTE"
        )
    expected_executors = _expected_executors(master, settings)
    require_reachable(master)
    proposed = default_settings(master, os.environ)  # reads SPARK_LOCAL_IP, which is set next
    proposed |= socket_settings(master)
    if SparkContext._gateway is None:
        java = find_java(os.environ)
        spark_home = prepare_spark_home(master)
        os.environ.update(session_environment(master, settings, java, os.environ, spark_home))
    builder, wanted = SparkSession.builder.appName(app_name), proposed | dict(settings)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    output = JvmOutput(echo=verbose) if SparkContext._gateway is None else None
    try:
        spark = _started(builder, wanted, output)
    except (PySparkException, Py4JError, OSError) as error:
        said = "" if output is None else output.text()
        refusal = SessionError(
            f"Spark did not start with spark.master = {master.url}: {_one_line(error)}{_telling(said)}"
        )
        refusal.__cause__ = error
        DetailLog(None, lambda: said).record(refusal)
        raise refusal from error
    try:
        wait_for_executors(spark, expected_executors, EXECUTOR_TIMEOUT_SECONDS)
    except BaseException:
        stop_session(spark)
        raise
    without_checksum_files(spark)
    return spark


def _started(
    builder: SparkSession.Builder, settings: Mapping[str, str], output: JvmOutput | None
) -> SparkSession:
    """The session; if its start is interrupted, the JVM launched for it ends.

    PySpark removes the file in which the JVM reports its port, and a JVM that cannot write it never exits.
    """
    try:
        if output is not None:
            _launch(settings, output)
        return builder.getOrCreate()
    except Exception:
        raise
    except BaseException:
        if output is not None:
            for child in psutil.Process().children():
                if any("spark-submit" in word or "SparkSubmit" in word for word in child.cmdline()):
                    child.kill()
        raise


def _launch(settings: Mapping[str, str], output: JvmOutput) -> None:
    """Start the JVM as PySpark does, except that its standard error goes to `output`."""
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        gateway = launch_gateway(conf, {"stderr": output.writing_end})  # type: ignore[no-untyped-call]
    finally:
        output.release()
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    keep_output(output)


def without_checksum_files(spark: SparkSession) -> None:
    """Let Spark write its logs to local disks without `.crc` files.

    Hadoop starts the program chmod for every file that it creates (4 to 5 ms), so this saves half of them: 28
    ms per epoch with four file sources. Existing files with a checksum are still verified.
    """
    context = spark.sparkContext
    assert context._jvm is not None
    root = context._jvm.java.net.URI.create("file:///")
    files = context._jvm.org.apache.hadoop.fs.FileSystem.get(root, context._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)


def adopt_session(spark: SparkSession) -> SparkSession:
    """Returns the user's session after checking its settings and, with one small task, its workers."""
    if not isinstance(getattr(spark, "_sc", None), SparkContext):
        raise SessionError(
            "the session is a Spark Connect client: hand over a classic one (spark.api.mode = classic)"
        )
    if spark.sparkContext._jsc is None:
        raise SessionError("the session is stopped: hand over a running one, or let Spillway build it")
    for key, (needed, default) in _REQUIRED_SETTINGS.items():
        found = spark.conf.get(key, default)
        if found != needed:
            raise SessionError(
                f"the session has {key} = {found}, but Spillway needs {needed}: build the session with that"
            )
    check_workers(spark)
    return spark


def stop_session(spark: SparkSession, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> None:
    """Stops the session and ends its JVM, unless someone else started that JVM."""
    gateway = SparkContext._gateway
    spark.stop()
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    gateway.shutdown()
    process.stdin.close()  # the JVM ends when its standard input does
    try:
        process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


def _reuse(active: SparkContext, settings: Mapping[str, str]) -> SparkSession:
    """The session of the running context, with the user's settings that can still change."""
    wanted = settings.get("spark.master", active.master)
    if wanted != active.master:
        raise SessionError(
            f"spark.master = {wanted} was asked for, but this process already runs Spark on {active.master}:"
            " stop that session first, or leave spark.master out"
        )
    spark = SparkSession.builder.getOrCreate()
    for key, value in settings.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    return spark


def _expected_executors(master: Master, settings: Mapping[str, str]) -> int:
    """How many executors must be registered before a session is returned; 0 if Spark adds them on demand."""
    if master.kind != "remote" or settings.get("spark.dynamicAllocation.enabled") == "true":
        return master.executors
    instances = settings.get("spark.executor.instances", "1")
    if not instances.isdecimal():
        raise SessionError(
            f"spark.executor.instances = {instances!r} is not a whole number; give one, such as 2"
        )
    return int(instances)


def _telling(said: str) -> str:
    """The first two lines in which a JVM that did not start says why."""
    found = re.search(r"^(?:Error|Unrecognized|Exception|Caused by)\b.*(?:\n.*\S.*)?", said, re.MULTILINE)
    return f" ({'; '.join(found[0].splitlines())})" if found else ""


def _one_line(error: Exception) -> str:
    """The cause of a failed start without its Java stack trace."""
    java_exception = getattr(error, "java_exception", None)
    text = str(java_exception if java_exception is not None else error)
    return " ".join(text.split("\n\tat ")[0].split()) or type(error).__name__
