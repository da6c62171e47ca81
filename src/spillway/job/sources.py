"""The tables `[sources.NAME]` and `[sink]` of a job file, which all commands share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.job.table import known, options_of, path_of, text

_SOURCE_KEYS = ("format", "path", "schema", "options", "event_time", "lateness")
_SINK_KEYS = ("format", "path", "options")


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source by Spark format: `[sources.NAME]`."""

    name: str
    format: str
    path: str | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    event_time: str | None = None
    """The timestamp column that windows go by."""
    lateness: str = "0 seconds"
    """How late a row may be and still count, as Spark writes intervals."""


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """Where results go: `[sink]`."""

    format: str = "delta"
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def read_sources(table: Mapping[str, Any], base: Path) -> dict[str, SourceSpec]:
    specs = {}
    for name, body in table.items():
        where = f"[sources.{name}]"
        if not isinstance(body, Mapping):
            raise JobError(f"{where} must be a table with format, path, schema, options")
        known(body, _SOURCE_KEYS, where)
        if "format" not in body:
            raise JobError(f'{where} has no format; for example format = "parquet"')
        specs[name] = SourceSpec(
            name=name,
            format=text(body, "format", where),
            path=path_of(body, base, where),
            schema=text(body, "schema", where) if "schema" in body else None,
            options=options_of(body, where),
            event_time=text(body, "event_time", where) if "event_time" in body else None,
            lateness=_lateness(body, where),
        )
    return specs


def _lateness(body: Mapping[str, Any], where: str) -> str:
    if "lateness" not in body:
        return "0 seconds"
    if "event_time" not in body:
        raise JobError(f'{where} has lateness but no event_time; add event_time = "column"')
    return text(body, "lateness", where)


def read_sink(table: Mapping[str, Any], base: Path) -> SinkSpec:
    known(table, _SINK_KEYS, "[sink]")
    return SinkSpec(
        format=text(table, "format", "[sink]") if "format" in table else "delta",
        path=path_of(table, base, "[sink]"),
        options=options_of(table, "[sink]"),
    )
