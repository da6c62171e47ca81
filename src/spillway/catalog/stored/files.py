"""The files behind the sources of a view: which are local, and which tasks can read without Spark.

Tasks can read a relation alone if it is plain Parquet on this machine: every file has all columns, with types
that mean the same in Spark, Parquet and Arrow, and no directory such as `k=1` adds a column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.compute import KEY_TYPES
from spillway.job import SourceSpec
from spillway.model import Catalog, Column

FORMATS = ("parquet", "delta")
"""Formats whose rows are in Parquet files."""
TYPES = KEY_TYPES | {
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
"""Types that are the same in Spark, in Parquet and in Arrow."""


@dataclass(frozen=True, slots=True)
class RelationFiles:
    """By source; a source that was given as a DataFrame has no entry."""

    names: Mapping[str, Sequence[str]]
    """All files, as Spark names them."""
    local: Mapping[str, tuple[str, ...]]
    """The paths of sources whose Parquet files are on this machine."""
    plain: Mapping[str, tuple[str, ...]]
    """Those of them that tasks can read alone."""


def relation_files(
    names: Mapping[str, Sequence[str]], specs: Mapping[str, SourceSpec], catalog: Catalog, *, is_local: bool
) -> RelationFiles:
    """The files `names` of each source. `is_local`: tasks run on this machine."""
    local = {
        source: paths
        for source, spec in specs.items()
        if spec.format.lower() in FORMATS and (paths := _local_paths(names[source])) is not None
    }
    plain = {
        source: paths
        for source, paths in local.items()
        if is_local and _is_plain(specs[source], catalog[source], paths)
    }
    return RelationFiles(names, local, plain)


def _local_paths(names: Sequence[str]) -> tuple[str, ...] | None:
    """The paths of a relation's files; None if there are none, or if some are elsewhere."""
    if not names or any(not name.startswith("file:///") for name in names):
        return None
    return tuple(sorted(unquote(urlsplit(name).path) for name in names))


def _is_plain(spec: SourceSpec, columns: Sequence[Column], paths: Sequence[str]) -> bool:
    """Whether the files alone say what Spark reads.

    Directories below the source's path such as `k=1` are columns to Spark, and win over columns of files.
    """
    if spec.format.lower() != "parquet" or spec.options or spec.schema or spec.path is None:
        return False
    top = Path(spec.path).absolute()
    if not all(Path(path).is_relative_to(top) for path in paths):
        return False
    if any("=" in str(Path(path).parent.relative_to(top)) for path in paths if Path(path) != top):
        return False
    wanted = {column.name: column.type for column in columns}
    if not TYPES.keys() >= set(wanted.values()):
        return False
    schemas = (pq.read_schema(path) for path in paths)
    return all(
        name in schema.names and schema.field(name).type == TYPES[kind]
        for schema in schemas
        for name, kind in wanted.items()
    )
