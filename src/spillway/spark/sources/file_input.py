"""A stream of files inside a view: the options that Spark has, and the columns that the view needs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlglot
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from sqlglot import exp

from spillway.job import SourceSpec
from spillway.plan.operators import InputPlan
from spillway.spark.jvm import elements
from spillway.spark.sources.native_source import NATIVE_FORMATS
from spillway.spark.sources.streaming import SourceLike

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

GLOB = frozenset("{}[]*?\\")
RENAMES_NOTHING = frozenset({"EventTimeWatermark", "SubqueryAlias", "View"})
"""Operators over a relation under which its columns keep their names."""


@dataclass(frozen=True, slots=True)
class FileInput:
    """One file relation of the stream."""

    name: str
    """The name of the source in the view."""
    format: str
    options: Mapping[str, str]
    schema: StructType
    needed: frozenset[str]
    """Columns that the view reads, in lower case."""
    required: frozenset[str]
    """Those of them that every file must have."""
    root: str | None = None
    """Directories `column=value` below it are columns (Spark's base path); None: there are none."""
    place: int = 0
    """Its position among all relations of the stream."""
    source: int = 0
    """Its number in Spark's checkpoint; a relation that occurs twice has one number."""
    places: tuple[int, ...] = (0,)
    """All its positions."""


def stored_input(
    spec: SourceSpec, schema: StructType, keys: Sequence[str], expressions: Sequence[str]
) -> FileInput:
    """Stored files of a source: the view joins on `keys` and reads `expressions` over its columns."""
    names = frozenset(field.name.lower() for field in schema.fields)
    needed, required = names & _names([*keys, *expressions]), names & _names(keys)
    return FileInput(
        name=spec.name,
        format=spec.format.lower(),
        options=spec.options,
        schema=schema,
        needed=needed,
        required=needed if spec.schema is None else needed & (required | _not_null(spec)),
        root=_stored_root(spec),
    )


def _stored_root(spec: SourceSpec) -> str | None:
    """The path, or the fixed part of a pattern, below which Spark finds the directories of partitions."""
    given = {key.lower(): value for key, value in spec.options.items()}.get("basepath", spec.path)
    parts = (given or "").split("/")
    fixed = next((n for n, part in enumerate(parts) if set(part) & GLOB), len(parts))
    return None if given is None else "/".join(parts[:fixed])


def file_inputs(
    inputs: Sequence[InputPlan], frames: Mapping[str, DataFrame], given: Mapping[str, SourceLike]
) -> list[FileInput]:
    """The file relations of a stream that is the union of these inputs."""
    leaves: list[JavaObject] = []
    found: dict[int, FileInput] = {}
    place = 0
    for input_ in inputs:
        for leaf, renamed in _leaves(frames[input_.source]._jdf.queryExecution().analyzed()):
            source = next((n for n, seen in enumerate(leaves) if seen.equals(leaf)), len(leaves))
            if source == len(leaves):
                leaves.append(leaf)
            if leaf.getClass().getSimpleName() == "StreamingRelation":
                made = _relation(leaf, renamed, input_, frames[input_.source], given[input_.source])
                before = found.get(source, replace(made, place=place, source=source, places=()))
                found[source] = replace(
                    before,
                    needed=before.needed | made.needed,
                    required=before.required | made.required,
                    places=(*before.places, place),
                )
            place += 1
    return list(found.values())


def is_plain(frame: DataFrame) -> bool:
    """Whether a DataFrame is a stream of files with nothing over it but an event time."""
    plan: JavaObject = frame._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() in RENAMES_NOTHING:
        (plan,) = elements(plan.children())
    return bool(plan.getClass().getSimpleName() == "StreamingRelation")


def _leaves(plan: "JavaObject", renamed: bool = False) -> Iterator[tuple["JavaObject", bool]]:
    """The streaming relations, from left to right, and whether columns may be renamed above them."""
    if not plan.isStreaming():
        return
    kind = plan.getClass().getSimpleName()
    if kind.startswith("StreamingRelation"):
        yield plan, renamed
        return
    for child in elements(plan.children()):
        yield from _leaves(child, renamed or kind not in RENAMES_NOTHING)


def _relation(
    leaf: "JavaObject", renamed: bool, input_: InputPlan, frame: DataFrame, given: SourceLike
) -> FileInput:
    """Keys and times are required. If columns are renamed above the relation, all columns are required."""
    source = leaf.dataSource()
    options = {pair._1().lower(): pair._2() for pair in elements(source.options().toSeq())}
    schema = StructType.fromJson(json.loads(leaf.schema().json())) if renamed else frame.schema
    names = frozenset(field.name.lower() for field in schema.fields)
    columns = (column.expression for column in input_.columns)
    keys = names if renamed else names & _names([*input_.keys, *input_.times])
    needed = keys if renamed else names & _names([*input_.keys, *columns, input_.filter or "true"])
    return FileInput(
        name=input_.source,
        format=_format(given, source.className().lower()),
        options=options,
        schema=schema,
        needed=needed,
        required=needed & (keys | _not_null(given)) if _has_schema(given) else needed,
        root=_root(options),
    )


def _format(given: SourceLike, known: str) -> str:
    """The source's own format where Spark only has its columns (`native_source`)."""
    if known in NATIVE_FORMATS:
        return f"{known} of Spark"  # its own connector reads it
    if isinstance(given, SourceSpec) and given.format.lower() in NATIVE_FORMATS:
        return given.format.lower()
    return known


def _root(options: Mapping[str, str]) -> str | None:
    """The source's path; for a pattern, only the base path that the user gives."""
    path = options.get("path", "")
    return options.get("basepath", None if set(path) & GLOB or not path else path)


def _has_schema(given: SourceLike) -> bool:
    return isinstance(given, DataFrame) or given.schema is not None


def _not_null(given: SourceLike) -> frozenset[str]:
    """Columns that the job declares NOT NULL; for a stream of files Spark itself forgets that."""
    if not isinstance(given, SourceSpec) or given.schema is None:
        return frozenset()
    schema = StructType.fromDDL(given.schema)
    assert isinstance(schema, StructType)
    return frozenset(field.name.lower() for field in schema.fields if not field.nullable)


def _names(texts: Sequence[str]) -> frozenset[str]:
    """All names in these expressions, in lower case."""
    found = (sqlglot.parse_one(text, read="spark").find_all(exp.Identifier) for text in texts)
    return frozenset(name.name.lower() for names in found for name in names)
