"""Starting Spark: Java, session settings, executors, and helpers for the gateway.

Contract: a session binds to loopback unless its master is elsewhere; a user's settings win over the
defaults. Start with `build`; `defaults` has every setting and its reason.
"""

from spillway.spark.jvm.arrow_frame import frame_of
from spillway.spark.jvm.build import adopt_session, build_session, stop_session, without_checksum_files
from spillway.spark.jvm.defaults import CHECKPOINT_FILES, CHECKPOINT_FILES_BY_RENAME, HADOOP_WITHOUT_YARN
from spillway.spark.jvm.executors import count_executors
from spillway.spark.jvm.failure import as_spillway_error, comes_from_spark, first_cause
from spillway.spark.jvm.frame_jobs import FrameJobs, Frames
from spillway.spark.jvm.inner_frame_jobs import open_frame_jobs
from spillway.spark.jvm.java import find_java
from spillway.spark.jvm.output import jvm_text
from spillway.spark.jvm.scala import elements

__all__ = [
    "CHECKPOINT_FILES",
    "CHECKPOINT_FILES_BY_RENAME",
    "HADOOP_WITHOUT_YARN",
    "FrameJobs",
    "Frames",
    "adopt_session",
    "as_spillway_error",
    "build_session",
    "comes_from_spark",
    "count_executors",
    "elements",
    "find_java",
    "first_cause",
    "frame_of",
    "jvm_text",
    "open_frame_jobs",
    "stop_session",
    "without_checksum_files",
]
