"""The relations of a view as tasks read and join them: files, columns, and the types of the result.

Tasks can do so if all relations are plain files (see `relation_files`) without filters and expressions, all
keys are integers, and no predicate needs Spark.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from spillway.compute import ComputeView, StoredRelation
from spillway.spark.compute.relation_files import KEY_TYPES
from spillway.spark.compute.segment_sql import quoted

Files = Mapping[str, tuple[str, ...]]


def can_join_columns(view: ComputeView, sources: Mapping[str, DataFrame], files: Files) -> bool:
    """Whether tasks can answer a view from these files alone."""
    columns = _plain_columns(view, sources, files)
    if view.residual or not all(columns) or not output_columns(view):
        return False
    types = _types(view, columns, sources)
    return all(types[name].simpleString() in KEY_TYPES for key in view.keys for _, name in key.members)


def stored_relations(
    view: ComputeView, sources: Mapping[str, DataFrame], files: Files
) -> tuple[StoredRelation, ...]:
    """The relations of a view as tasks read them."""
    return tuple(
        StoredRelation(files[relation.source], tuple(columns.items()))
        for relation, columns in zip(view.relations, _plain_columns(view, sources, files), strict=True)
    )


def output_columns(view: ComputeView) -> list[tuple[int, str]]:
    """The columns that the result is made of, with their relation."""
    return [
        (number, column.name)
        for number, relation in enumerate(view.relations)
        for column in relation.columns
        if any(quoted(column.name) in expression for _, expression in view.outputs)
    ]


def output_schema(view: ComputeView, sources: Mapping[str, DataFrame], files: Files) -> StructType:
    """The types of those columns."""
    types = _types(view, _plain_columns(view, sources, files), sources)
    schema = StructType()
    for _, name in output_columns(view):
        schema.add(name, types[name])
    return schema


def _plain_columns(view: ComputeView, sources: Mapping[str, DataFrame], files: Files) -> list[dict[str, str]]:
    """For each relation its columns by their name in the view; none if it has a filter or an expression."""
    found = []
    for relation in view.relations:
        known = {quoted(name): name for name in sources[relation.source].columns}
        is_plain = (
            relation.filter is None
            and relation.source in files
            and all(column.expression in known for column in relation.columns)
        )
        found.append({column.name: known[column.expression] for column in relation.columns if is_plain})
    return found


def _types(
    view: ComputeView, columns: Sequence[Mapping[str, str]], sources: Mapping[str, DataFrame]
) -> dict[str, DataType]:
    return {
        name: sources[relation.source].schema[column].dataType
        for relation, found in zip(view.relations, columns, strict=True)
        for name, column in found.items()
    }
