"""Spark's own plan of a view: the joins as they were written, optimised and run by Spark as it likes.

It runs in a session of its own with the settings of the session that was given, so adaptive execution,
broadcast thresholds and the cost-based optimizer are as the user has set them."""

import uuid
from collections.abc import Mapping
from contextlib import ExitStack

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spillway.compute import ComputeView
from spillway.errors import ComputeError
from spillway.spark.compute.cancellation import Cancellation, first_line
from spillway.spark.compute.execution import Write
from spillway.spark.compute.segment_sql import own_sql


class OwnPlan:
    """One run; `cancel` ends it from another thread."""

    def __init__(self, spark: SparkSession, view: ComputeView, sources: Mapping[str, DataFrame]) -> None:
        self._spark = spark.newSession()
        self._view, self._sources = view, sources
        self._token = f"spillway_{uuid.uuid4().hex[:12]}"
        self._cancellation = Cancellation(spark.sparkContext, self._token)

    def run(self, write: Write) -> None:
        """Compute the view; `write` gets the DataFrame of the result and must consume it."""
        context = self._spark.sparkContext
        with ExitStack() as closing:
            tables = {name: f"{self._token}_{number}" for number, name in enumerate(self._sources)}
            for name, frame in self._sources.items():
                frame.createOrReplaceGlobalTempView(tables[name])
                closing.callback(self._spark.catalog.dropGlobalTempView, tables[name])
            closing.enter_context(self._cancellation.watched())
            context.addJobTag(self._token)
            closing.callback(context.removeJobTag, self._token)
            try:
                self._cancellation.check()
                write(self._spark.sql(own_sql(self._view, lambda name: f"global_temp.{tables[name]}")))
            except (PySparkException, Py4JError) as error:
                self._cancellation.check()
                raise ComputeError(f"Spark failed: {first_line(error)}") from error

    def cancel(self) -> None:
        self._cancellation.cancel()
