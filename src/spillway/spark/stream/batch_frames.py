"""The wire rows of a batch of files as a DataFrame: the stream's own plan over these files only.

The plan of the stream was analysed once. Here each of its file streams is replaced by a relation over the
batch's files with the same attributes, so filters, projections, hashes and types are those of the stream, and
so are the columns in names of directories.

This module uses inner names of Spark (logical plans, `cloneSession`). If they fail when a query starts, it
runs under Structured Streaming, which needs none of them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spillway.manager.files import FileBatch, FileEntry, escaped, is_pattern
from spillway.spark.jvm import elements
from spillway.spark.sources import FileInput

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

STREAM_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str((1 << 31) - 1),
}
"""The first two as in Structured Streaming; and files are looked at in the driver, never by a job."""
NOT_PATTERNS = {"__globPaths__": "false"}
"""What Spark's own file stream says of its paths. With it Spark reads files twice if another one's name looks
like a pattern; then all are given as patterns."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of the stream's plan that has file streams below."""

    plan: "JavaObject"
    children: tuple["_Node | _Static | _Leaf", ...]


@dataclass(frozen=True, slots=True)
class _Static:
    plan: "JavaObject"


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A file stream: the number of its relation, its columns, and these as attributes by name."""

    relation: int
    output: "JavaObject"
    attributes: dict[str, "JavaObject"]


class BatchFrames:
    """Makes the DataFrames of one query."""

    def __init__(self, stream: DataFrame, relations: Sequence[FileInput]) -> None:
        """`relations` are the distinct file streams of the query; no other streams are in it."""
        spark = stream.sparkSession
        java: Any = spark._jsparkSession.cloneSession()
        self._session = SparkSession(spark.sparkContext, java)
        for name, value in STREAM_SETTINGS.items():
            self._session.conf.set(name, value)
        self._jvm: Any = spark.sparkContext._jvm
        self._relations = list(relations)
        numbers = {place: number for number, of in enumerate(relations) for place in of.places}
        leaves = iter(sorted(numbers.items()))
        self._schemas: dict[int, StructType] = {}
        """Of each relation, without what the query does with its columns."""
        self._tree = self._parsed(stream._jdf.queryExecution().analyzed(), (number for _, number in leaves))
        self._columns: dict[tuple[int, tuple[str, ...]], list[str]] = {}
        """The columns of a relation over files, by the columns in names of their directories."""
        jvm: Any = self._jvm
        self._none = jvm.scala.Option.empty()
        self._no_rows = self._seq([])

    def frame_of(self, batch: FileBatch) -> DataFrame:
        """The wire rows, planned down to tasks, as in foreachBatch: the epoch's own part is planned alone."""
        rows, java = self.plan_of(batch)._jdf, self._session._jsparkSession
        planned = java.internalCreateDataFrame(rows.queryExecution().toRdd(), rows.schema(), False)
        return DataFrame(planned, self._session)

    def plan_of(self, batch: FileBatch) -> DataFrame:
        """The same rows with their whole plan."""
        found = [self._relation(number, files) for number, files in enumerate(batch.files)]
        plan = self._replaced(self._tree, found)
        made = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._session._jsparkSession, plan)
        return DataFrame(made, self._session)

    def _parsed(self, plan: "JavaObject", numbers: Iterator[int]) -> _Node | _Static | _Leaf:
        """The plan in parts, so that a batch needs few calls; `numbers` are those of its relations."""
        if not plan.isStreaming():
            return _Static(plan)
        if plan.getClass().getSimpleName() == "StreamingRelation":
            number, output = next(numbers), plan.output()
            self._schemas[number] = StructType.fromJson(json.loads(plan.schema().json()))
            return _Leaf(number, output, {column.name(): column for column in elements(output)})
        return _Node(plan, tuple(self._parsed(child, numbers) for child in elements(plan.children())))

    def _relation(self, number: int, files: Sequence[FileEntry]) -> "tuple[JavaObject, list[str]] | None":
        """The files of an input as a relation, and its columns; None if there are no files."""
        if not files:
            return None
        relation = self._relations[number]
        options = {key: value for key, value in relation.options.items() if key != "path"}
        paths = [_address(entry.path) for entry in files]
        if any(map(is_pattern, paths)):
            paths = [escaped(path) for path in paths]
        else:
            options |= NOT_PATTERNS
        if relation.root is not None:
            options["basePath"] = relation.root
        reader = self._session.read.format(relation.format).schema(self._schemas[number]).options(**options)
        plan = reader.load(paths)._jdf.queryExecution().analyzed()
        key = number, tuple(name for name, _ in files[0].partitions)
        if key not in self._columns:
            self._columns[key] = [attribute.name() for attribute in elements(plan.output())]
        return plan.relation(), self._columns[key]

    def _replaced(
        self, part: _Node | _Static | _Leaf, found: "list[tuple[JavaObject, list[str]] | None]"
    ) -> "JavaObject":
        if isinstance(part, _Static):
            return part.plan
        if isinstance(part, _Node):
            children = [self._replaced(child, found) for child in part.children]
            return part.plan.withNewChildren(self._seq(children))
        logical = self._jvm.org.apache.spark.sql
        given = found[part.relation]
        if given is None:
            return logical.catalyst.plans.logical.LocalRelation(part.output, self._no_rows, False, self._none)
        relation, columns = given
        output = self._seq([part.attributes[name] for name in columns])
        return logical.execution.datasources.LogicalRelation(relation, output, self._none, False, self._none)

    def _seq(self, values: "list[JavaObject]") -> "JavaObject":
        return self._jvm.PythonUtils.toSeq(values)


def _address(path: str) -> str:
    return path if "://" in path else f"file://{path}"
