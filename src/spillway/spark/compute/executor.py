"""What runs a plan, whatever the way: one executor is one run. `executors` has one for each way.

Contract: making an executor starts nothing in Spark and writes nothing. After `run`, also if it failed or
was cancelled, no temporary view and no scratch file is left.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from spillway.compute import Segment
from spillway.spark.compute.measured_rows import Measured
from spillway.spark.compute.segment_progress import Listener

BUILT, WRITTEN, RESULT = "built", "written", "result"
SETTINGS: Mapping[str, str] = {
    # The tree is decided: Spark must neither reorder joins nor choose other sides.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.cbo.joinReorder.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.broadcastTimeout": "36000",
    # Hash tables leave nulls out anyway; without filters for that, relations of one shape share their code.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
Write = Callable[[DataFrame], object]
"""Gets the DataFrame of the result and must consume it."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a plan runs, and on what."""

    spark: SparkSession
    sources: Mapping[str, DataFrame]
    files: Mapping[str, tuple[str, ...]]
    """The files of sources that tasks can read themselves."""
    listener: Listener | None = None
    scratch: Path | None = None
    """For results that are kept between statements; None: the system's directory for temporary files."""


@dataclass(frozen=True, slots=True)
class SegmentOutcome:
    """What one segment took and gave."""

    number: int
    mask: int
    seconds: float
    step_rows: tuple[int | None, ...]
    table_bytes: int
    kept: str
    """built (as a hash table of the statement that it is in), written, or result."""
    statement: int
    """The number of the last segment of its statement."""


class PlanExecutor(Protocol):
    """One run of one plan."""

    def prepare(self) -> None:
        """Do what needs no job, such as naming tables; `run` does it otherwise."""

    def run(self, write: Write) -> None:
        """Compute the view and give it to `write`."""

    def outcomes(self) -> list[SegmentOutcome]:
        """What the segments of the run took and gave; asking Spark takes a moment."""

    def cancel(self) -> None:
        """Stop all jobs of the run, from another thread."""


def tree_session(spark: SparkSession) -> SparkSession:
    """A session in which Spark keeps to the tree."""
    session = spark.newSession()
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    return session


def statement_outcomes(
    numbers: Mapping[Segment, int],
    root: Segment,
    seconds: float,
    found: Mapping[Segment, Measured],
    kept: str = RESULT,
) -> list[SegmentOutcome]:
    """The outcomes of the segments of one statement, which took `seconds` and ends with `root`."""
    return [
        SegmentOutcome(
            numbers[segment],
            segment.mask,
            seconds if segment is root else measured.seconds or 0.0,
            measured.step_rows,
            measured.table_bytes,
            kept if segment is root else BUILT,
            numbers[root],
        )
        for segment, measured in found.items()
    ]


def table_bytes_peak(outcomes: Sequence[SegmentOutcome]) -> int:
    """The hash tables that were in memory together: those of one statement."""
    sizes: dict[int, int] = {}
    for outcome in outcomes:
        sizes[outcome.statement] = sizes.get(outcome.statement, 0) + outcome.table_bytes
    return max(sizes.values(), default=0)
