"""Result files as a Spark DataFrame with the types of the view, even before the first file.

The schema is the one Spark itself reads from an empty Parquet file with the columns of the results, so no
second mapping of Arrow to Spark types is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from spillway.errors import SinkError
from spillway.spark.sinks.staging import PRIVATE_DIRECTORY
from spillway.state.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

EXAMPLE_NAME = f"{PRIVATE_DIRECTORY}/columns.parquet"


class FrameReader:
    """Makes DataFrames of files below one sink's root."""

    __slots__ = ("_schema", "_spark", "_storage")

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark = spark
        self._storage = storage
        self._schema: StructType | None = None

    def prepare(self, schema: pa.Schema) -> None:
        """Learn the columns of the results."""
        example = pa.BufferOutputStream()
        parquet.write_table(schema.empty_table(), example)
        self._storage.write(EXAMPLE_NAME, example.getvalue())
        self._schema = self._spark.read.parquet(self._address(EXAMPLE_NAME)).schema

    def frame(self, names: list[str]) -> DataFrame:
        """A DataFrame over files or directories, given as names below the root ('' is the root)."""
        if self._schema is None:
            raise SinkError(f"sink {self._storage.root} was not prepared before its first epoch")
        return self._spark.read.schema(self._schema).parquet(*(self._address(name) for name in names))

    def _address(self, name: str) -> str:
        # Spark's default filesystem need not be the local one.
        uri = self._storage.uri(name)
        return f"file://{uri}" if self._storage.is_local else uri.partition("?")[0]
