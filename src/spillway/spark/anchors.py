"""The anchor of a query, for as many processors as it has now."""

from pyspark.sql import SparkSession

from spillway.spark.anchor import Anchor, build_anchor
from spillway.spark.session_executors import count_executors


class Anchors:
    """Several executors need an anchor; one reaches its whole memory tier from anywhere."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._executors = count_executors(spark)
        self._anchor: Anchor | None = None
        self._prepared: Anchor | None = None

    def prepare(self, processors: int) -> None:
        """Build another anchor beside running epochs, if one is needed: the first that uses it would wait.

        To start Python workers in advance does not help: such tasks take those that wait for the next epoch.
        """
        if self._executors > 1 and (self._anchor is None or len(self._anchor.labels) != processors):
            self._prepared = build_anchor(self._spark, processors, self._executors)

    def of(self, processors: int) -> Anchor | None:
        """The anchor for so many processors; another number has another one, built when it is needed."""
        if self._executors < 2:
            return None
        if self._anchor is None or len(self._anchor.labels) != processors:
            prepared, self._prepared = self._prepared, None
            fits = prepared is not None and len(prepared.labels) == processors
            built = prepared if fits else build_anchor(self._spark, processors, self._executors)
            self.release()
            self._anchor = built
        return self._anchor

    def release(self) -> None:
        for anchor in (self._anchor, self._prepared):
            if anchor is not None:
                anchor.release()
        self._anchor = self._prepared = None
