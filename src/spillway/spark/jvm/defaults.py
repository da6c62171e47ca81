"""The Spark settings Spillway starts with, and why; a user's setting of the same name always wins.

An epoch is one small job repeated for hours, not one large query: planning aids (adaptive execution, many
shuffle partitions) cost more than they give, locality is worth waiting for, and the JVM only plans and
shuffles while state lives outside it, so its heap is small.
Known limit: heap and JVM options reach only a JVM that is not yet up.
"""

from collections.abc import Mapping
from pathlib import Path

from spillway.spark.jvm.master import Master

CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINT_FILES_BY_RENAME = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

HADOOP_WITHOUT_YARN = {
    f"spark.{process}.extraClassPath": str(Path(__file__).parent / "hadoop")
    for process in ("driver", "executor")
}
"""Half of the 1100 entries of Hadoop's configuration are YARN defaults, which Spark on one machine never
reads. Spark copies the whole configuration about twenty times per epoch of a view over four file sources,
and sends it to its tasks, compressed, for every source."""

_LOG_CONFIGURATION = Path(__file__).parent / "log4j2.properties"

# Peak resident size of the driver's JVM over 15 jobs of 300,000 rows (one shuffle, one Arrow task), Java 17,
# 1 GB heap: serial 540 to 547 MB (three runs), G1, Java's default, 668 MB and parallel 738 MB (one run each).
# CPU time was 38 to 43 s with all three: no difference that a busy two-core machine could show.
# A virtual machine that cannot start says so on standard output, which belongs to the command's result.
_JVM_OPTIONS = "-XX:+UseSerialGC -XX:+DisplayVMOutputToStderr"


def default_settings(master: Master, environ: Mapping[str, str]) -> dict[str, str]:
    """Every default setting for `master`."""
    settings = {
        "spark.master": master.url,
        "spark.api.mode": "classic",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{_JVM_OPTIONS} -Dlog4j2.configurationFile={_LOG_CONFIGURATION}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Sticky processors: a task waits for the executor that has its state, and runs once.
        "spark.locality.wait": "3s",
        "spark.speculation": "false",
        "spark.shuffle.reduceLocality.enabled": "false",
        # One epoch's plan is known and small.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        # Rows to Python and back: Arrow batches, large, but not so large that rows of 10 kB are a problem.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
        # Arrow's own pool keeps freed memory: see `state/memory/allocator`. The system's also took a seventh
        # less processor time over 20 epochs of 60,000 rows (4.1 and 3.6 s against 4.7 and 4.3 s).
        "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
        # Spark keeps offsets only; Spillway's own manifest is the log that recovery reads.
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # Spark's default manager starts a shell program (chmod, readlink) for every small file that it
        # writes; with five such files per batch this one took 1.7 s instead of 5.2 s over 20 batches.
        CHECKPOINT_FILES: CHECKPOINT_FILES_BY_RENAME,
        # Spark describes the plan of each epoch for a web page that is switched off: keep it short.
        "spark.sql.ui.explainMode": "simple",
    }
    if master.is_on_this_machine:
        # Shuffled rows stay on this machine: compression and checksums only cost time.
        settings |= {
            **HADOOP_WITHOUT_YARN,
            "spark.executor.extraJavaOptions": _JVM_OPTIONS,
            "spark.shuffle.compress": "false",
            "spark.shuffle.checksum.enabled": "false",
            # Few partitions, one for each processor: fewer writes. Scans took about a tenth less time.
            "spark.shuffle.file.buffer": "256k",
        }
        if master.kind == "local":
            # It guards against the second run of a task whose output was lost; a single process loses none.
            settings["spark.sql.shuffle.orderIndependentChecksum.enabled"] = "false"
            settings["spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch"] = "false"
        if "SPARK_LOCAL_IP" not in environ:
            settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings
