"""The job file: a TOML document that names the view, its sources, how to run it and where results go.

It is read completely and checked before anything starts: unknown tables and keys, missing parts and wrong
types are refused with their place. Relative paths are relative to the job file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.job.run import RunConfig
from spillway.job.sources import SinkSpec, SourceSpec, read_sink, read_sources
from spillway.job.table import known, read_job_file, refuse_maintain_job, resolve, setting, subtable, text
from spillway.model import View, parse_bytes
from spillway.plan.operators import JOIN_KINDS

TABLES = ("view", "sources", "run", "compute", "sink", "spark")
_VIEW_KEYS = ("sql", "file")
_RUN_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "processors": int,
    "groups": int,
    "checkpoint": str,
    "until": str,
    "trigger": str,
    "epoch_rows": int,
    "epoch_results": int,
    "lineage_one_in": int,
    "spill": str,
    "spill_share": (float, int),
    "inactive_epochs": int,
    "history_weight": (float, int),
    "state_share": (float, int),
    "room_share": (float, int),
    "restart_epochs": int,
    "rotation": bool,
    "rotation_gap": (float, int),
    "rotation_turns": str,
    "tier": str,
    "adapt": str,
    "load_signal": str,
}
_RUN_KEYS = (*_RUN_TYPES, "memory", "rotation_backlog", "distribution", "policy", "buffer", "emulate")
_EMULATE_KEYS = ("row_seconds", "speeds")


@dataclass(frozen=True, slots=True)
class Job:
    view: View
    sources: Mapping[str, SourceSpec]
    run: RunConfig
    sink: SinkSpec
    spark: Mapping[str, str]


def read_job(path: str | Path) -> Job:
    return read_job_file(path, parse_job)


def parse_job(document: Mapping[str, Any], base: Path) -> Job:
    """The job in a parsed TOML document; `base` is the directory of relative paths."""
    refuse_maintain_job(document)
    known(document, TABLES, "the job file")
    return Job(
        view=read_view(subtable(document, "view"), base, tree=True),
        sources=read_sources(subtable(document, "sources"), base),
        run=_run(subtable(document, "run"), base),
        sink=read_sink(subtable(document, "sink", required=False), base),
        spark=read_spark(document),
    )


def read_view(table: Mapping[str, Any], base: Path, *, tree: bool = False) -> View:
    """The view; with `tree`, the table may also give the join tree and the kind of join."""
    known(table, (*_VIEW_KEYS, "tree", "join") if tree else _VIEW_KEYS, "[view]")
    if ("sql" in table) == ("file" in table):
        raise JobError('[view] needs either sql = "SELECT ..." or file = "view.sql"')
    view = View.sql(_view_text(table, base))
    if "join" in table:
        kind = text(table, "join", "[view]")
        if kind not in JOIN_KINDS:
            raise JobError(f"[view] join = {kind!r}: must be one of {', '.join(JOIN_KINDS)}")
        view = view.with_join(kind)
    shape = table.get("tree")
    if shape is None:
        return view
    if not isinstance(shape, list):
        raise JobError("[view] tree: give nested lists of input names, such as [['a', 'b'], 'c']")
    return view.with_tree(*shape)


def _view_text(table: Mapping[str, Any], base: Path) -> str:
    if "sql" in table:
        return text(table, "sql", "[view]")
    path = base / text(table, "file", "[view]")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise JobError(f"[view] file {path} cannot be read: {error.strerror}") from None


def _run(table: Mapping[str, Any], base: Path) -> RunConfig:
    known(table, _RUN_KEYS, "[run]")
    values: dict[str, Any] = {}
    for key, kind in _RUN_TYPES.items():
        if key in table:
            if not isinstance(table[key], kind) or isinstance(table[key], bool) != (kind is bool):
                raise JobError(f"[run] {key} = {table[key]!r}: must be {_kind(kind)}")
            values[key] = table[key]
    values |= _memory(table.get("memory"))
    values |= _emulation(table)
    if "rotation_backlog" in table:
        values["rotation_backlog_bytes"] = parse_bytes(table["rotation_backlog"], "[run] rotation_backlog")
    if "buffer" in table:
        values["buffer_bytes"] = parse_bytes(table["buffer"], "[run] buffer")
    if "distribution" in table:
        shares = table["distribution"]
        values["distribution"] = tuple(shares) if isinstance(shares, list) else shares
    if "policy" in table:
        values["policy"] = dict(subtable(table, "policy"))
    if "checkpoint" not in values:
        raise JobError('[run] has no checkpoint; for example checkpoint = "state"')
    for key in ("checkpoint", "tier"):
        if key in values:
            values[key] = resolve(values[key], base)
    return RunConfig(**values)


def _memory(given: object) -> dict[str, Any]:
    """One size for all processors, or a list with one for each."""
    if given is None:
        return {}
    if isinstance(given, list):
        return {"memory_each": tuple(parse_bytes(size, "[run] memory") for size in given)}
    return {"memory_bytes": parse_bytes(str(given), "[run] memory")}


def _emulation(table: Mapping[str, Any]) -> dict[str, Any]:
    body = subtable(table, "emulate", required=False)
    known(body, _EMULATE_KEYS, "[run.emulate]")
    values: dict[str, Any] = {}
    if "row_seconds" in body:
        values["row_seconds"] = _number(body["row_seconds"], "[run.emulate] row_seconds")
    if "speeds" in body:
        if not isinstance(body["speeds"], list):
            raise JobError(f"[run.emulate] speeds = {body['speeds']!r}: must be a list of numbers")
        values["speeds"] = tuple(_number(speed, "[run.emulate] speeds") for speed in body["speeds"])
    return values


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise JobError(f"{where} = {value!r}: must be a number")
    return float(value)


def read_spark(document: Mapping[str, Any]) -> dict[str, str]:
    return {key: setting(value) for key, value in subtable(document, "spark", required=False).items()}


def _kind(kind: type | tuple[type, ...]) -> str:
    if kind is bool:
        return "true or false"
    return "a string" if kind is str else "a whole number" if kind is int else "a number"
