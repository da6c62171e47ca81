"""Spillway: exact, incremental answers to integration views on Spark, inside a memory budget.

The public surface: `Session` runs a `View` and returns a `Query`; `read_job` reads a job file; every error is
a `SpillwayError`. Spark is imported when `Session` or `Query` is first used.
"""

from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.job import Job, SourceSpec, read_job
from spillway.view import View

if TYPE_CHECKING:
    from spillway.spark.query import Query
    from spillway.spark.view_session import Session

__version__ = "0.1.0"
__all__ = ["Job", "Query", "Session", "SourceSpec", "SpillwayError", "View", "read_job"]


def __getattr__(name: str) -> Any:
    if name == "Session":
        from spillway.spark.view_session import Session

        return Session
    if name == "Query":
        from spillway.spark.query import Query

        return Query
    raise AttributeError(f"module 'spillway' has no attribute {name!r}")
