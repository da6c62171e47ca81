"""`DataFrame.mapInArrow` for functions that change with every epoch, while all around them stays the same.

PySpark tells the JVM of a function in some fifty calls: its environment variable by variable, its columns one
by one, its type as text. That took 25 ms of every epoch. Here what stays the same is told once, and four
calls are left.

Known limit: inner names of PySpark 4.3 are used, to which the dependency is bound.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.java_collections import ListConverter, MapConverter
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
MAX_COMMAND_BYTES = 1 << 20
"""Larger functions are left to PySpark, which broadcasts them."""


class ArrowTasks:
    """Makes stages of Python tasks whose output has one schema."""

    def __init__(self, spark: SparkSession, schema: StructType) -> None:
        context = spark.sparkContext
        jvm, gateway = context._jvm, context._gateway
        assert jvm is not None and gateway is not None
        client = gateway._gateway_client
        self._context = context
        self._schema = schema
        self._function = jvm.SimplePythonFunction
        self._udf = getattr(jvm, "org.apache.spark.sql.execution.python.UserDefinedPythonFunction")
        self._sequence: Callable[..., JavaObject] = jvm.PythonUtils.toSeq
        self._type = spark._jsparkSession.parseDataType(schema.json())
        self._environment = MapConverter().convert(context.environment, client)
        self._includes = ListConverter().convert(context._python_includes, client)
        self._nothing = ListConverter().convert([], client)
        self._columns: dict[tuple[str, ...], JavaObject] = {}

    def over(
        self, frame: DataFrame, task: Task, columns: Sequence[str] | None = None, *, barrier: bool = False
    ) -> DataFrame:
        """The task over each partition of the frame; who knows the frame's columns saves a call to ask."""
        command = CloudPickleSerializer().dumps((task, self._schema))  # type: ignore[no-untyped-call]
        if len(command) > MAX_COMMAND_BYTES:
            return frame.mapInArrow(task, self._schema, barrier=barrier)
        function = self._function(
            bytearray(command),
            self._environment,
            self._includes,
            self._context.pythonExec,
            self._context.pythonVer,
            self._nothing,
            self._context._javaAccumulator,
        )
        kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
        udf = self._udf("task", function, self._type, kind, True, self._nothing, self._nothing)
        given = self._java_columns(tuple(frame.columns if columns is None else columns))
        return DataFrame(frame._jdf.mapInArrow(udf.apply(given), barrier, None), frame.sparkSession)

    def _java_columns(self, names: tuple[str, ...]) -> "JavaObject":
        if names not in self._columns:
            columns: list[Any] = [F.col(f"`{name}`")._jc for name in names]
            self._columns[names] = self._sequence(columns)
        return self._columns[names]
