"""The job file: a TOML document that names the view, its sources, how to run it and where results go.

It is read completely and checked before anything starts: unknown tables and keys, missing parts and wrong
types are refused with their place. Relative paths are relative to the job file.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.config import RunConfig, parse_bytes
from spillway.errors import JobError
from spillway.view import View

_TABLES = ("view", "sources", "run", "sink", "spark")
_VIEW_KEYS = ("sql", "file")
_SOURCE_KEYS = ("format", "path", "schema", "options", "event_time", "lateness")
_SINK_KEYS = ("format", "path", "options")
_RUN_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "processors": int,
    "groups": int,
    "checkpoint": str,
    "until": str,
    "trigger": str,
    "epoch_rows": int,
    "epoch_results": int,
    "spill": str,
    "spill_share": (float, int),
    "rotation": bool,
    "rotation_gap": (float, int),
    "tier": str,
    "adapt": str,
}
_RUN_KEYS = (*_RUN_TYPES, "memory", "distribution", "policy", "buffer", "emulate")
_EMULATE_KEYS = ("row_seconds", "speeds")


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


@dataclass(frozen=True, slots=True)
class Job:
    view: View
    sources: Mapping[str, SourceSpec]
    run: RunConfig
    sink: SinkSpec
    spark: Mapping[str, str]


def read_job(path: str | Path) -> Job:
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(f"job file {file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"job file {file} is not valid TOML: {error}") from None
    try:
        return parse_job(document, file.resolve().parent)
    except JobError as error:
        raise JobError(f"job file {file}: {error}") from None


def parse_job(document: Mapping[str, Any], base: Path) -> Job:
    """The job in a parsed TOML document; `base` is what relative paths are relative to."""
    _known(document, _TABLES, "the job file")
    return Job(
        view=_view(_table(document, "view"), base),
        sources=_sources(_table(document, "sources"), base),
        run=_run(_table(document, "run"), base),
        sink=_sink(_table(document, "sink", required=False), base),
        spark={key: _setting(value) for key, value in _table(document, "spark", required=False).items()},
    )


def _view(table: Mapping[str, Any], base: Path) -> View:
    _known(table, _VIEW_KEYS, "[view]")
    if ("sql" in table) == ("file" in table):
        raise JobError('[view] needs either sql = "SELECT ..." or file = "view.sql"')
    if "sql" in table:
        return View.sql(_text(table, "sql", "[view]"))
    path = base / _text(table, "file", "[view]")
    try:
        return View.sql(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(f"[view] file {path} cannot be read: {error.strerror}") from None


def _sources(table: Mapping[str, Any], base: Path) -> dict[str, SourceSpec]:
    specs = {}
    for name, body in table.items():
        where = f"[sources.{name}]"
        if not isinstance(body, Mapping):
            raise JobError(f"{where} must be a table with format, path, schema, options")
        _known(body, _SOURCE_KEYS, where)
        if "format" not in body:
            raise JobError(f'{where} has no format; for example format = "parquet"')
        specs[name] = SourceSpec(
            name=name,
            format=_text(body, "format", where),
            path=_path(body, base, where),
            schema=_text(body, "schema", where) if "schema" in body else None,
            options=_options(body, where),
            event_time=_text(body, "event_time", where) if "event_time" in body else None,
            lateness=_lateness(body, where),
        )
    return specs


def _lateness(body: Mapping[str, Any], where: str) -> str:
    if "lateness" not in body:
        return "0 seconds"
    if "event_time" not in body:
        raise JobError(f'{where} has lateness but no event_time; add event_time = "column"')
    return _text(body, "lateness", where)


def _run(table: Mapping[str, Any], base: Path) -> RunConfig:
    _known(table, _RUN_KEYS, "[run]")
    values: dict[str, Any] = {}
    for key, kind in _RUN_TYPES.items():
        if key in table:
            if not isinstance(table[key], kind) or isinstance(table[key], bool) != (kind is bool):
                raise JobError(f"[run] {key} = {table[key]!r}: must be {_kind(kind)}")
            values[key] = table[key]
    values |= _memory(table.get("memory"))
    values |= _emulation(table)
    if "buffer" in table:
        values["buffer_bytes"] = parse_bytes(table["buffer"], "[run] buffer")
    if "distribution" in table:
        shares = table["distribution"]
        values["distribution"] = tuple(shares) if isinstance(shares, list) else shares
    if "policy" in table:
        values["policy"] = dict(_table(table, "policy"))
    if "checkpoint" not in values:
        raise JobError('[run] has no checkpoint; for example checkpoint = "state"')
    for key in ("checkpoint", "tier"):
        if key in values:
            values[key] = _resolve(values[key], base)
    return RunConfig(**values)


def _memory(given: object) -> dict[str, Any]:
    """One size for all processors, or a list with one for each."""
    if given is None:
        return {}
    if isinstance(given, list):
        return {"memory_each": tuple(parse_bytes(one, "[run] memory") for one in given)}
    return {"memory_bytes": parse_bytes(str(given), "[run] memory")}


def _emulation(table: Mapping[str, Any]) -> dict[str, Any]:
    body = _table(table, "emulate", required=False)
    _known(body, _EMULATE_KEYS, "[run.emulate]")
    values: dict[str, Any] = {}
    if "row_seconds" in body:
        values["row_seconds"] = _number(body["row_seconds"], "[run.emulate] row_seconds")
    if "speeds" in body:
        if not isinstance(body["speeds"], list):
            raise JobError(f"[run.emulate] speeds = {body['speeds']!r}: must be a list of numbers")
        values["speeds"] = tuple(_number(one, "[run.emulate] speeds") for one in body["speeds"])
    return values


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise JobError(f"{where} = {value!r}: must be a number")
    return float(value)


def _sink(table: Mapping[str, Any], base: Path) -> SinkSpec:
    _known(table, _SINK_KEYS, "[sink]")
    return SinkSpec(
        format=_text(table, "format", "[sink]") if "format" in table else "delta",
        path=_path(table, base, "[sink]"),
        options=_options(table, "[sink]"),
    )


def _table(document: Mapping[str, Any], name: str, *, required: bool = True) -> Mapping[str, Any]:
    if name not in document:
        if required:
            raise JobError(f"there is no [{name}] table")
        return {}
    table = document[name]
    if not isinstance(table, Mapping):
        raise JobError(f"{name} must be a table: [{name}]")
    return table


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            close = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(keys)}"
            raise JobError(f"unknown key {key} in {where}; {hint}")


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(table[key], str) or not table[key].strip():
        raise JobError(f"{where} {key} = {table[key]!r}: must be a text that is not empty")
    return str(table[key])


def _path(table: Mapping[str, Any], base: Path, where: str) -> str | None:
    return _resolve(_text(table, "path", where), base) if "path" in table else None


def _resolve(path: str, base: Path) -> str:
    return path if "://" in path else str(base / path)


def _options(table: Mapping[str, Any], where: str) -> dict[str, str]:
    options = table.get("options", {})
    if not isinstance(options, Mapping):
        raise JobError(f'{where} options must be a table: options = {{ key = "value" }}')
    return {key: _setting(value) for key, value in options.items()}


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(kind: type | tuple[type, ...]) -> str:
    if kind is bool:
        return "true or false"
    return "a text" if kind is str else "a whole number" if kind is int else "a number"
