"""A job file's document and its tables: reading their keys, with errors that name the key and where it is."""

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from spillway.errors import JobError

JobT = TypeVar("JobT")


def read_document(file: Path) -> Mapping[str, Any]:
    """The TOML document in a file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(f"job file {file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"job file {file} is not valid TOML: {error}") from None


def read_job_file(path: str | Path, parse: Callable[[Mapping[str, Any], Path], JobT]) -> JobT:
    """The job in a file; `parse` gets its document and the base directory of relative paths."""
    file = Path(path)
    document = read_document(file)
    try:
        return parse(document, file.resolve().parent)
    except JobError as error:
        raise JobError(f"job file {file}: {error}") from None


def subtable(document: Mapping[str, Any], name: str, *, required: bool = True) -> Mapping[str, Any]:
    if name not in document:
        if required:
            raise JobError(f"there is no [{name}] table")
        return {}
    table = document[name]
    if not isinstance(table, Mapping):
        raise JobError(f"{name} must be a table: [{name}]")
    return table


def refuse_maintain_job(document: Mapping[str, Any]) -> None:
    """Refuse a job file that only `spillway maintain` can run."""
    if "servers" in document or "maintain" in document:
        raise JobError(
            "this is the job of a maintained view; use spillway maintain (--explain shows its plan)"
        )


def known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            close = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(keys)}"
            raise JobError(f"unknown key {key} in {where}; {hint}")


def require_known(given: Mapping[str, Any], config: type[Any], where: str) -> None:
    """Refuse settings that a config dataclass does not have, as keys of a table are refused."""
    known(given, tuple(field.name for field in fields(config)), where)


def text(table: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(table[key], str) or not table[key].strip():
        raise JobError(f"{where} {key} = {table[key]!r}: must be a non-empty string")
    return str(table[key])


def path_of(table: Mapping[str, Any], base: Path, where: str) -> str | None:
    return resolve(text(table, "path", where), base) if "path" in table else None


def resolve(path: str, base: Path) -> str:
    return path if "://" in path else str(base / path)


def options_of(table: Mapping[str, Any], where: str) -> dict[str, str]:
    options = table.get("options", {})
    if not isinstance(options, Mapping):
        raise JobError(f'{where} options must be a table: options = {{ key = "value" }}')
    return {key: setting(value) for key, value in options.items()}


def setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
