"""The rows of one batch, wherever they come from, as tasks read them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from spillway.spark.jvm import FrameJobs, Frames
from spillway.spark.worker import ArrowRows, RowReader


class BatchRows(Protocol):
    """Wire rows of one epoch."""

    def few(self) -> Iterator[pa.RecordBatch] | None:
        """The rows, if they are few enough for the driver to read them and send them with its orders."""

    def sources(self, jobs: FrameJobs) -> list[tuple[Frames, RowReader]]:
        """What scan tasks read, and how."""


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Rows that Spark reads."""

    frame: DataFrame

    def few(self) -> None:
        """Only Spark knows how many there are."""

    def sources(self, jobs: FrameJobs) -> list[tuple[Frames, RowReader]]:
        schema = to_arrow_schema(self.frame.schema, timezone="UTC")
        return [(jobs.arrow(self.frame), ArrowRows(schema.serialize().to_pybytes()))]
