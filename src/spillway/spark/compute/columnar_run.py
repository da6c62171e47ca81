"""A tree as one Spark job of Python tasks that join columns (`compute/columnar.py`), where that is possible.

It is where all relations are plain Parquet files that every task can open, keys are integers, no predicate
needs Spark, and every task has the memory for all hash tables. Otherwise the tree runs as SQL statements.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import AccumulatorParam, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from spillway.compute import (
    ColumnarJoin,
    ComputeView,
    Segment,
    ShareOfJoin,
    StoredRelation,
    TreeCost,
    mask_of_input,
    steps,
)
from spillway.spark.compute.measured_rows import Measured
from spillway.spark.compute.segment_sql import quoted

MOST_STEPS = 3e8
"""Estimated rows that all joins of a tree look up; beyond, code that is compiled is worth its compilation."""
KEY_TYPES = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
TYPES = KEY_TYPES | {
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
"""Types that are the same in Spark, in Parquet and in Arrow."""
Counts = dict[tuple[int, int], int]


class _Sum(AccumulatorParam[Counts]):
    """Rows by segment and join; key (-1, -1) is what all tasks held in memory."""

    def zero(self, value: Counts) -> Counts:
        return dict.fromkeys(value, 0)

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        for key, count in value2.items():
            value1[key] = value1.get(key, 0) + count
        return value1


class ColumnarRun:
    """One run of one tree."""

    def __init__(self, spark: SparkSession, join: ColumnarJoin, schema: StructType, shares: int) -> None:
        self._spark, self._join, self._schema, self._shares = spark, join, schema, shares
        self._counts = spark.sparkContext.accumulator(dict[tuple[int, int], int](), _Sum())

    def frame(self) -> DataFrame:
        """The joined rows, with the columns that the result needs."""
        tasks = self._spark.range(0, self._shares, 1, self._shares)
        return tasks.mapInArrow(_task(self._join, self._shares, self._counts.add), self._schema)

    def measured(self) -> dict[Segment, Measured]:
        counts = self._counts.value
        found = {}
        for number, segment in enumerate(self._join.tree.segments()):
            rows = tuple(counts.get((number, step), 0) for step in range(len(segment.builds)))
            is_last = segment is self._join.tree
            found[segment] = Measured(rows, counts.get((-1, -1), 0) if is_last else 0)
        return found


def columnar_run(
    spark: SparkSession,
    view: ComputeView,
    model: TreeCost,
    tree: Segment,
    sources: Mapping[str, DataFrame],
    files: Mapping[str, tuple[str, ...]],
    limit_bytes: float | None = None,
) -> ColumnarRun | None:
    """The run of a tree by columns, which ends where tasks would hold more than `limit_bytes` together; None
    where it must be SQL."""
    if not model.machine.by_columns:
        return None
    columns = [_plain_columns(view, index, sources, files) for index in range(len(view.relations))]
    types = _types(view, columns, sources)
    names = _output_names(view)
    join = ColumnarJoin(
        model.graph,
        tree,
        stored_relations(view, sources, files),
        tuple(dict(key.members) for key in view.keys),
        tuple(names),
        None if limit_bytes is None else limit_bytes / model.machine.processors,
    )
    schema = StructType()
    for _, name in names:
        schema.add(name, types[name])
    return ColumnarRun(spark, join, schema, model.machine.processors)


def stored_relations(
    view: ComputeView, sources: Mapping[str, DataFrame], files: Mapping[str, tuple[str, ...]]
) -> tuple[StoredRelation, ...]:
    """The relations of a view that tasks can read alone."""
    return tuple(
        StoredRelation(files[one.source], tuple(_plain_columns(view, index, sources, files).items()))
        for index, one in enumerate(view.relations)
    )


def can_join_columns(
    view: ComputeView, sources: Mapping[str, DataFrame], files: Mapping[str, tuple[str, ...]]
) -> bool:
    """Whether tasks can answer a view from these files alone."""
    columns = [_plain_columns(view, index, sources, files) for index in range(len(view.relations))]
    if view.residual or not all(columns) or not _output_names(view):
        return False
    types = _types(view, columns, sources)
    names = [name for key in view.keys for _, name in key.members]
    return all(types[name].simpleString() in KEY_TYPES for name in names)


def _types(
    view: ComputeView, columns: Sequence[Mapping[str, str]], sources: Mapping[str, DataFrame]
) -> dict[str, DataType]:
    return {
        name: sources[one.source].schema[column].dataType
        for one, found in zip(view.relations, columns, strict=True)
        for name, column in found.items()
    }


def _output_names(view: ComputeView) -> list[tuple[int, str]]:
    """The columns that the result is made of."""
    return [
        (index, column.name)
        for index, one in enumerate(view.relations)
        for column in one.columns
        if any(quoted(column.name) in expression for _, expression in view.outputs)
    ]


def plain_files(
    context: SparkContext, frame: DataFrame, root: str, paths: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The files of a relation that is read from Parquet as it is; None where tasks cannot read it alone.

    Directories below `root` such as `k=1` are columns to Spark, and win over columns of that name in files.
    """
    if not (context.master or "").startswith("local["):
        return None
    top = Path(root).absolute()
    if not all(Path(path).is_relative_to(top) for path in paths):
        return None
    if any("=" in str(Path(path).parent.relative_to(top)) for path in paths if Path(path) != top):
        return None
    wanted = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    for path in paths:
        found = pq.read_schema(path)
        for name, kind in wanted.items():
            if kind not in TYPES or name not in found.names or found.field(name).type != TYPES[kind]:
                return None
    return paths


def _plain_columns(
    view: ComputeView, index: int, sources: Mapping[str, DataFrame], files: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """The columns of a relation by their name in the view; none where one is an expression."""
    one = view.relations[index]
    if one.filter is not None or one.source not in files:
        return {}
    known = {quoted(name): name for name in sources[one.source].columns}
    if not all(column.expression in known for column in one.columns):
        return {}
    return {column.name: known[column.expression] for column in one.columns}


def is_small(model: TreeCost, tree: Segment) -> bool:
    """Whether Python tasks can be expected to be through with a tree in a reasonable time."""
    found = 0.0
    for segment in tree.segments():
        for step in steps(model.graph, segment):
            build = mask_of_input(step.build)
            best = model.cardinality.by_matches(step.classes, step.before, build)[0]
            found += model.cardinality.rows(step.before)
            found += model.cardinality.matches(best, step.before, build) if len(step.classes) > 1 else 0.0
    return found <= MOST_STEPS


def _task(
    join: ColumnarJoin, shares: int, add: Callable[[Counts], None]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.column(0).to_pylist():
                one = ShareOfJoin(
                    join, share, shares, lambda segment, step, rows: add({(segment, step): rows})
                )
                yield from one.batches()
                add({(-1, -1): one.peak_bytes})

    return run
