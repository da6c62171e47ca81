"""The relations of a view as tasks read and join them: files, columns, and the types of the result.

Tasks can do so if all relations are plain files (`catalog.stored.files`) without filters and expressions, all
keys are integers, and no predicate needs Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from spillway.compute.columnar import StoredRelation
from spillway.compute.compute_view import ComputeView
from spillway.model import Catalog

KEY_TYPES = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
"""Types of keys by which tasks can join."""
Files = Mapping[str, tuple[str, ...]]
"""By source, files that tasks can read alone."""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def can_join_columns(view: ComputeView, catalog: Catalog, files: Files) -> bool:
    """Whether tasks can answer a view from these files alone."""
    columns = _plain_columns(view, catalog, files)
    if view.residual or not all(columns) or not output_columns(view):
        return False
    types = column_types(view, catalog, files)
    return all(types[name] in KEY_TYPES for key in view.keys for _, name in key.members)


def stored_relations(view: ComputeView, catalog: Catalog, files: Files) -> tuple[StoredRelation, ...]:
    """The relations of a view as tasks read them."""
    return tuple(
        StoredRelation(files[relation.source], tuple(columns.items()))
        for relation, columns in zip(view.relations, _plain_columns(view, catalog, files), strict=True)
    )


def output_columns(view: ComputeView) -> list[tuple[int, str]]:
    """The columns that the result is made of, with their relation."""
    return [
        (number, column.name)
        for number, relation in enumerate(view.relations)
        for column in relation.columns
        if any(quoted(column.name) in expression for _, expression in view.outputs)
    ]


def column_types(view: ComputeView, catalog: Catalog, files: Files) -> dict[str, str]:
    """The Spark types of all columns that are read, by their name in the view."""
    types = {source: {column.name: column.type for column in columns} for source, columns in catalog.items()}
    return {
        name: types[relation.source][column]
        for relation, found in zip(view.relations, _plain_columns(view, catalog, files), strict=True)
        for name, column in found.items()
    }


def _plain_columns(view: ComputeView, catalog: Catalog, files: Files) -> list[dict[str, str]]:
    """For each relation its columns by their name in the view; none if it has a filter or an expression."""
    found = []
    for relation in view.relations:
        known = {quoted(column.name): column.name for column in catalog[relation.source]}
        is_plain = (
            relation.filter is None
            and relation.source in files
            and all(column.expression in known for column in relation.columns)
        )
        found.append({column.name: known[column.expression] for column in relation.columns if is_plain})
    return found
