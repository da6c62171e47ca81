"""The relations of a view as DataFrames: filtered, and with exactly the columns that the view needs."""

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spillway.compute.compute_view import ComputeView, ReadRelation
from spillway.errors import ViewError


def read_relations(view: ComputeView, sources: Mapping[str, DataFrame]) -> list[DataFrame]:
    """One DataFrame per relation; an expression that Spark does not accept is refused here."""
    return [_read(one, sources[one.source]) for one in view.relations]


def _read(one: ReadRelation, source: DataFrame) -> DataFrame:
    try:
        frame = source if one.filter is None else source.where(F.expr(one.filter))
        return frame.select(*(F.expr(column.expression).alias(column.name) for column in one.columns))
    except PySparkException as error:
        raise ViewError(f"relation {one.alias}: {str(error).splitlines()[0]}") from None
