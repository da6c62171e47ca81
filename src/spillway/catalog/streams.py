"""The columns of a job's streams without Spark: from a given schema, or from the files of a source.

Contract: columns are those that Spark would find (`spark/sources/streaming.py`), or `NeedsSparkError` says
why only Spark can tell. Sources that Spark refuses are refused with the same text, or left to Spark.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from spillway.catalog.delta import DeltaFeatureError, delta_columns, open_delta
from spillway.catalog.event_time import with_event_time
from spillway.catalog.parquet_footer import parquet_columns
from spillway.catalog.place import check_options, check_path, local_path
from spillway.catalog.source_files import SourceFiles, list_files
from spillway.errors import SourceError, ViewError
from spillway.job import SourceSpec, ignored_options
from spillway.model import Column, parse_ddl
from spillway.plan.typing import NeedsSparkError, column_type

_TEXT = ("csv", "json")
_ONLY_SPARK = re.compile(r"\b(time|geometry|geography|with|without|local)\b", re.IGNORECASE)
"""Words of types that Spark knows and `parse_ddl` does not."""
_NAME_WITH_COLON = re.compile(r"(?:[^<:]|<.*>)*:", re.DOTALL)
"""`parse_ddl` reads `k: long`; Spark does so only inside a struct."""


def stream_columns(spec: SourceSpec, *, with_delta: bool = False) -> tuple[Column, ...]:
    """The columns of a stream of files, or of a Delta table if Spark has a reader for it."""
    kind = spec.format.lower()
    ignored_options(spec.format, spec.options, f"[sources.{spec.name}]")
    if kind == "delta" and with_delta and spec.schema is None:
        return with_event_time(_delta(spec), spec)
    if kind != "parquet" and (kind not in _TEXT or spec.schema is None):
        raise NeedsSparkError(f'[sources.{spec.name}] has format = "{spec.format}"' + _without_schema(spec))
    check_path(spec)
    check_options(spec)
    path = local_path(spec)
    if not Path(path).is_dir():
        raise NeedsSparkError(f"[sources.{spec.name}] path = {path} is not a directory")
    declared = None if spec.schema is None else _declared(spec, spec.schema)
    files = list_files(path)
    columns = _stored(spec, files) if declared is None else declared
    columns = _with_partitions(columns, files, path, is_declared=declared is not None)
    timed = with_event_time(columns, spec)
    if declared is not None and kind == "parquet" and files.paths:
        _check_declared(spec, declared, files)
    return timed


def schema_refusal(spec: SourceSpec) -> SourceError | None:
    """What is wrong with the schema of a source; None if there is nothing, or only Spark can tell."""
    if spec.schema is None:
        return None
    try:
        parse_ddl(spec.schema, distinct=False)
    except ViewError as error:
        return SourceError(f"[sources.{spec.name}] {error}")
    return None


def wrong_type(spec: SourceSpec, name: str, declared: str, found: str) -> SourceError:
    return SourceError(
        f"[sources.{spec.name}] schema has {name} {declared}, but the files in {spec.path} have "
        f"{name} {found}; correct the schema"
    )


def _delta(spec: SourceSpec) -> tuple[Column, ...]:
    from deltalake.exceptions import DeltaError

    where = f"[sources.{spec.name}]"
    check_options(spec)
    path = local_path(spec) if spec.path is not None else ""
    try:
        return known_columns(delta_columns(open_delta(path), path), where)
    except (DeltaError, DeltaFeatureError, OSError):
        raise NeedsSparkError(f"{where} Delta table {path} has to be read by Spark") from None


def _without_schema(spec: SourceSpec) -> str:
    return " and no schema" if spec.schema is None and spec.format.lower() in _TEXT else ""


def _declared(spec: SourceSpec, schema: str) -> tuple[Column, ...]:
    refusal = schema_refusal(spec)
    if _NAME_WITH_COLON.match(schema) or (refusal is not None and _ONLY_SPARK.search(schema)):
        raise NeedsSparkError(f"[sources.{spec.name}] schema = {schema!r}")
    if refusal is not None:
        raise refusal
    return known_columns(parse_ddl(schema, distinct=False), f"[sources.{spec.name}] schema")


def _stored(spec: SourceSpec, files: SourceFiles) -> tuple[Column, ...]:
    """Spark takes the columns of the first file."""
    if not files.paths:
        raise NeedsSparkError(f"[sources.{spec.name}] path = {spec.path} has no files yet")
    return known_columns(parquet_columns(files.paths[0]), files.paths[0])


def known_columns(columns: tuple[Column, ...], where: str) -> tuple[Column, ...]:
    """The columns, if all types and names are ones that these rules know."""
    for column in columns:
        if column_type(column.type) is None or column.type == "void":
            raise NeedsSparkError(f"{where} has column {column.name} of type {column.type}")
    if len({column.name.lower() for column in columns}) < len(columns):
        raise NeedsSparkError(f"{where} has column names that differ only in case")
    return columns


def _with_partitions(
    columns: tuple[Column, ...], files: SourceFiles, path: str, *, is_declared: bool
) -> tuple[Column, ...]:
    """Columns of directories come last; a declared one has its declared type."""
    own = {column.name.lower(): column for column in files.partitions}
    both = [column for column in columns if column.name.lower() in own]
    for column in both:
        found = own[column.name.lower()]
        if not is_declared or column.name != found.name or column.type not in ("string", found.type):
            raise NeedsSparkError(f"{path} has directories for column {column.name}")
    types = {column.name: column.type for column in both}
    ends = (replace(column, type=types.get(column.name, column.type)) for column in files.partitions)
    return (*(column for column in columns if column.name.lower() not in own), *ends)


def _check_declared(spec: SourceSpec, declared: tuple[Column, ...], files: SourceFiles) -> None:
    """Refuse a declared type that the files do not have; Spark would notice much later."""
    stored = {column.name.lower(): column.type for column in _stored(spec, files)}
    for column in declared:
        found = stored.get(column.name.lower())
        if column.name.lower() in {partition.name.lower() for partition in files.partitions}:
            if found is not None:
                raise NeedsSparkError(f"{files.paths[0]} and its directory both have {column.name}")
            continue
        if found is None:
            raise NeedsSparkError(f"{files.paths[0]} has no column {column.name}, but other files may")
        if found != column.type:
            raise wrong_type(spec, column.name, column.type, found)
