"""The columns and files of stored relations: Parquet files and Delta tables on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlglot import exp

from spillway.catalog.delta import DeltaFeatureError, delta_columns, delta_files, open_delta
from spillway.catalog.parquet_footer import parquet_columns
from spillway.catalog.place import local_path
from spillway.catalog.source_files import list_files
from spillway.catalog.streams import known_columns
from spillway.compute import ComputeView
from spillway.errors import SourceError
from spillway.job import SourceSpec
from spillway.model import Column
from spillway.plan.sql import parse_expression
from spillway.plan.typing import NeedsSparkError


@dataclass(frozen=True, slots=True)
class LocalRelation:
    """A relation whose files are on this machine."""

    columns: tuple[Column, ...]
    paths: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The files as Spark names them."""
        return [f"file://{quote(path)}" for path in self.paths]


def read_relation(spec: SourceSpec) -> LocalRelation:
    """The relation of a source; one in another format, or with a schema or options, is left to Spark."""
    where, kind = f"[sources.{spec.name}]", spec.format.lower()
    if kind not in ("parquet", "delta") or spec.path is None:
        raise NeedsSparkError(f'{where} has format = "{spec.format}"')
    if spec.schema is not None or spec.options:
        raise NeedsSparkError(f"{where} has a schema or options")
    if "://" not in spec.path and not any(c in spec.path for c in "*?[{") and not Path(spec.path).exists():
        raise SourceError(f"{where} path {spec.path} does not exist; create it, or correct the path")
    path = local_path(spec)
    return _delta(path, where) if kind == "delta" else _parquet(path, where)


def _parquet(path: str, where: str) -> LocalRelation:
    files = list_files(path)
    if not files.paths or files.partitions:
        raise NeedsSparkError(f"{where} path = {path} has no files, or directories that are columns")
    return LocalRelation(known_columns(parquet_columns(files.paths[0]), files.paths[0]), files.paths)


def _delta(path: str, where: str) -> LocalRelation:
    from deltalake.exceptions import DeltaError

    try:
        table = open_delta(path)
        columns = known_columns(delta_columns(table, path), path)
        found = delta_files(table, path, table.metadata().partition_columns)
    except (DeltaError, DeltaFeatureError, OSError):
        raise NeedsSparkError(f"{where} Delta table {path} has to be read by Spark") from None
    paths = tuple(file for files in found.values() for file in files)
    if not paths or any("://" in file for file in paths):
        raise NeedsSparkError(f"{where} Delta table {path} has no files on this machine")
    return LocalRelation(columns, paths)


def check_files(view: ComputeView, name: str, relation: LocalRelation) -> None:
    """Leave files to Spark that differ in columns which the view reads."""
    needed: set[str] = set()
    for read in view.relations:
        if read.source == name:
            texts = [column.expression for column in read.columns]
            nodes = (parse_expression(text) for text in [*texts, read.filter or "true"])
            needed |= {
                name.name.lower()
                for node in nodes
                if node is not None
                for name in node.find_all(exp.Identifier)
            }
    wanted = {
        (column.name.lower(), column.type) for column in relation.columns if column.name.lower() in needed
    }
    for path in relation.paths[1:]:
        if not wanted <= {(column.name.lower(), column.type) for column in parquet_columns(path)}:
            raise NeedsSparkError(f"{path} has other columns than {relation.paths[0]}")
