"""The environment variables of a Spark driver, decided apart from the process that they are set in.

Spark's launch scripts, its JVM and its executors read these before any setting is read, so they must be in
place before the JVM starts. Invariant: executors on this machine run the same Python, otherwise pickled
functions could find other packages. Known limit: for executors elsewhere, the user's variable is trusted.
"""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

from spillway.spark.jvm.java import JavaRuntime
from spillway.spark.jvm.master import Master


def session_environment(
    master: Master,
    settings: Mapping[str, str],
    java: JavaRuntime,
    environ: Mapping[str, str],
    spark_home: Path | None,
) -> dict[str, str]:
    """The variables to set for a driver of `master`; harmless variables of the user are left out."""
    python = settings.get("spark.pyspark.python")
    if python is None:
        python = environ.get("PYSPARK_PYTHON") if master.kind == "remote" else None
    variables = {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": python or sys.executable,
        "PYSPARK_DRIVER_PYTHON": settings.get("spark.pyspark.driver.python", sys.executable),
    }
    if spark_home is not None:
        variables["SPARK_HOME"] = str(spark_home)
    if master.is_on_this_machine:
        # Without these two, executors of local-cluster look for the driver at the host's outer name and die.
        variables["SPARK_LOCAL_IP"] = environ.get("SPARK_LOCAL_IP", "127.0.0.1")
        variables["SPARK_LOCAL_HOSTNAME"] = environ.get("SPARK_LOCAL_HOSTNAME", "localhost")
    return variables


def prepare_spark_home(master: Master) -> Path | None:
    """The Spark of this `pyspark`; None if it is not the pip package, so the user's own applies.

    The workers of `local-cluster` log into `SPARK_HOME/work`. They get a temporary home of links instead of
    the installed package, which may be read-only and must not grow; it is removed when this process ends.
    """
    package = Path(pyspark.__file__).parent
    if not (package / "jars").is_dir():
        return None
    if master.kind != "local-cluster":
        return package
    home = Path(tempfile.mkdtemp(prefix="spillway-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for entry in package.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return home
