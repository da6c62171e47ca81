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

    def of(self, processors: int) -> Anchor | None:
        """The anchor for so many processors; another number has another one, built when it is needed."""
        if self._executors < 2:
            return None
        if self._anchor is None or len(self._anchor.labels) != processors:
            built = build_anchor(self._spark, processors, self._executors)
            self.release()
            self._anchor = built
        return self._anchor

    def release(self) -> None:
        if self._anchor is not None:
            self._anchor.release()
            self._anchor = None
