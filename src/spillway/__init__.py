"""Spillway: exact, incremental answers to integration views on Spark, inside a memory budget.

The public surface: `Session` runs a `View` and returns a `Query`; `read_job` reads a job file; every error
is a `SpillwayError`. A name is loaded when it is first used, so importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spillway.errors import SpillwayError
    from spillway.job import Job, SourceSpec, read_job
    from spillway.model import View
    from spillway.spark.session import Session
    from spillway.spark.stream import Query

__version__ = "0.1.0"
__all__ = ["Job", "Query", "Session", "SourceSpec", "SpillwayError", "View", "read_job"]

_HOMES = {
    "Job": "spillway.job",
    "Query": "spillway.spark.stream",
    "Session": "spillway.spark.session",
    "SourceSpec": "spillway.job",
    "SpillwayError": "spillway.errors",
    "View": "spillway.model",
    "read_job": "spillway.job",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'spillway' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
