"""What runs in Spark's Python workers: the tasks of an epoch, and checks of every host.

Contract: importing this loads as few modules as possible; a test counts them. Start with `processor`.
"""

from spillway.spark.worker.native_rows import NativeRows
from spillway.spark.worker.processor import (
    OVERFLOWED,
    ArrowRows,
    LastStageTask,
    RowReader,
    ScatterTask,
    StageOrders,
    StageTask,
    executor_name,
)

__all__ = [
    "OVERFLOWED",
    "ArrowRows",
    "LastStageTask",
    "NativeRows",
    "RowReader",
    "ScatterTask",
    "StageOrders",
    "StageTask",
    "executor_name",
]
