"""What runs in Spark's Python workers: a processor's task, and checks of every host.

Contract: importing this loads as few modules as possible; a test counts them. Start with `processor`.
"""

from spillway.spark.worker.processor import COMMIT_SCHEMA, all_levels, by_level, by_partition, executor_name

__all__ = ["COMMIT_SCHEMA", "all_levels", "by_level", "by_partition", "executor_name"]
