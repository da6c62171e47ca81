"""The columns of a streaming DataFrame as the planner sees them, with watermarks as lateness."""

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from spillway.model import Column
from spillway.spark.sources.streaming import WATERMARK_METADATA


def columns_of(frame: DataFrame) -> tuple[Column, ...]:
    """The columns of a DataFrame; `withWatermark` gives the event time and its lateness."""
    return tuple(
        Column(field.name, field.dataType.simpleString(), _lateness_us(field))
        for field in frame.schema.fields
    )


def _lateness_us(field: StructField) -> int | None:
    delay_ms = field.metadata.get(WATERMARK_METADATA)
    return None if delay_ms is None else int(delay_ms) * 1000
