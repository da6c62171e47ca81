"""The sources of a view as tables with names that SQL can use, in all sessions, while a view is computed."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession


class SourceTables:
    def __init__(self, spark: SparkSession, sources: Mapping[str, DataFrame], prefix: str) -> None:
        self._spark, self._sources = spark, sources
        self._names = {source: f"{prefix}_{number}" for number, source in enumerate(sources)}
        self._are_created = False

    def name(self, source: str) -> str:
        return f"global_temp.{self._names[source]}"

    def create(self) -> None:
        if not self._are_created:
            for source, frame in self._sources.items():
                frame.createOrReplaceGlobalTempView(self._names[source])
            self._are_created = True

    def drop(self) -> None:
        for name in self._names.values():
            self._spark.catalog.dropGlobalTempView(name)
