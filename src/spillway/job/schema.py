"""The JSON Schema of job files (draft 2020-12), for editors.

It accepts whatever the parser accepts. Only the parser checks what holds between keys, such as processors and
groups, and what a variable stands for.
"""

from typing import Any

from spillway.job.kinds import Schema
from spillway.job.tables import SPARK_HELP, TABLES, DeclaredTable, TableEntry
from spillway.job.view import JOINED

_VERSION = "https://json-schema.org/draft/2020-12/schema"


def job_schema() -> Schema:
    """The schema of a whole job file."""
    declared = {(table.header, "maintain" in table.commands): table for table in TABLES}
    definitions = {_name(table): _table(table) for table in TABLES} | {"joined": JOINED}
    view, sink = declared["[view]", True], declared["[sink]", False]
    spark = {"type": "object", "description": SPARK_HELP}
    streamed = {
        "view": _reference(view),
        "sources": _each(declared["[sources.NAME]", False]),
        "run": _reference(declared["[run]", False]),
        "compute": _reference(declared["[compute]", False]),
        "sink": _reference(sink),
        "spark": spark,
    }
    maintained = {
        "view": _reference(view),
        "sources": _each(declared["[sources.NAME]", True]),
        "servers": _each(declared["[servers.NAME]", True]),
        "maintain": _reference(declared["[maintain]", True]),
        "spark": spark,
    }
    is_maintained = {"anyOf": [{"required": ["servers"]}, {"required": ["maintain"]}]}
    return {
        "$schema": _VERSION,
        "title": "Spillway job file",
        "description": "A view, its sources, how to run, compute or maintain it, and where results go.",
        "type": "object",
        "if": is_maintained,
        "then": _document(maintained, ["view", "sources", "servers", "maintain"]),
        "else": _document(streamed, ["view", "sources"]),
        "$defs": definitions,
    }


def _document(properties: Schema, required: list[str]) -> Schema:
    return {"properties": properties, "required": required, "additionalProperties": False}


def _name(table: DeclaredTable) -> str:
    return table.config.__name__


def _reference(table: DeclaredTable) -> Schema:
    return {"$ref": f"#/$defs/{_name(table)}"}


def _each(table: DeclaredTable) -> Schema:
    return {"type": "object", "additionalProperties": _reference(table)}


def _table(table: DeclaredTable) -> Schema:
    return _object(table.help, table.entries, "")


def _object(description: str, entries: tuple[TableEntry, ...], prefix: str) -> Schema:
    """The schema of a table; dotted names are tables inside."""
    properties: dict[str, Schema] = {}
    for entry in entries:
        name, dot, _ = entry.name.removeprefix(prefix).partition(".")
        if not dot:
            properties[name] = _key(entry)
        elif name not in properties:
            inner = tuple(other for other in entries if other.name.startswith(f"{prefix}{name}."))
            properties[name] = _object("", inner, f"{prefix}{name}.")
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [entry.name.removeprefix(prefix) for entry in entries if entry.is_required]
    if required:
        made["required"] = required
    return {"description": description, **made} if description else made


def _key(entry: TableEntry) -> Schema:
    made: dict[str, Any] = {"description": entry.help, **entry.kind.schema()}
    if entry.default is not None:
        made["default"] = entry.default
    elif entry.unset:
        made["description"] += f" Default: {entry.unset}."
    return made
