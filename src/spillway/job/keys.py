"""The declaration of a key: a field of a config dataclass, with a `Key` in its annotation.

    processors: Annotated[int, Key(WholeNumber(1), "Processors that hold the state.")] = 2

From these come parsing, checks, suggestions, the reference, the JSON Schema and the keywords of the Python
API. A key is named like its field unless it says otherwise; a dotted name is a key of a table inside. Two
fields may share a name: one takes a single value, the other a list.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from spillway.errors import JobError
from spillway.job.environment import expanded
from spillway.job.kinds import KeyPlace, ListOf, ValueKind, is_list

ConfigT = TypeVar("ConfigT")
REQUIRED: Any = object()
"""The default of a key that must be given."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a field's annotation says of its key."""

    kind: ValueKind
    help: str
    name: str = ""
    unset: str = ""
    """What holds where the key is not given, if its default does not say it."""
    example: str = ""
    """A value as the job file writes it; for keys that must be given."""


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """A key with its field and default."""

    attribute: str
    name: str
    kind: ValueKind
    help: str
    default: Any
    unset: str
    example: str

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    def is_default(self, value: object) -> bool:
        """Whether a value may go unchecked: the default itself, not what is only equal to it (2.0, True)."""
        return type(value) is type(self.default) and bool(value == self.default)

    def place(self, table: str, base: Path | None = None) -> KeyPlace:
        *tables, name = self.name.split(".")
        return KeyPlace(".".join([table[:-1], *tables]) + "]", name, base)


def keys_of(config: type) -> tuple[DeclaredKey, ...]:
    """The declared keys of a config dataclass, in its order."""
    hints = get_type_hints(config, include_extras=True)
    found = []
    for field in fields(config):
        key = next(
            (part for part in getattr(hints[field.name], "__metadata__", ()) if isinstance(part, Key)), None
        )
        if key is None:
            continue
        default = REQUIRED if field.default is MISSING else field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        name = key.name or field.name
        found.append(DeclaredKey(field.name, name, key.kind, key.help, default, key.unset, key.example))
    return tuple(found)


def parse_table(
    config: type[ConfigT],
    table: Mapping[str, Any],
    name: str,
    base: Path | None,
    environment: Mapping[str, str],
    /,
    **given: Any,
) -> ConfigT:
    """The config that a table of a job file describes; `given` fields are no keys."""
    return config(**_values(keys_of(config), table, name, base, environment), **given)


def check_values(config: Any, table: str) -> None:
    """Refuse values that no job file may have; for configs that are made in Python."""
    for key in keys_of(type(config)):
        value = getattr(config, key.attribute)
        if not key.is_default(value):
            key.kind.parse(value, key.place(table))


def from_keywords(config: type[Any], given: Mapping[str, Any], table: str, call: str) -> dict[str, Any]:
    """Fields of a config from keywords: names of fields, or of keys as the job file has them."""
    keys = keys_of(config)
    names = (name for key in keys for name in (key.name, key.attribute) if "." not in name)
    refuse_unknown(given, dict.fromkeys(names), call)
    values: dict[str, Any] = {}
    for name, value in given.items():
        key = next((key for key in keys if key.attribute == name), None) or _fitting(keys, name, value)
        if key.attribute in values:
            raise JobError(f"{call} has both {key.name} and {key.attribute}; give one of them")
        is_default = key.is_default(value)
        values[key.attribute] = value if is_default else key.kind.parse(value, key.place(table))
    return values


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a key that is not known; the error suggests what was meant."""
    names = tuple(known)
    for name in given:
        if name not in names:
            raise JobError(f"unknown key {name} in {where}; {suggestion(name, names, 'keys')}")


def suggestion(name: str, known: Sequence[str], nouns: str) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"known {nouns}: {', '.join(known)}"


def _values(
    keys: Sequence[DeclaredKey],
    table: Mapping[str, Any],
    name: str,
    base: Path | None,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    refuse_unknown(table, dict.fromkeys(key.name.partition(".")[0] for key in keys), name)
    values: dict[str, Any] = {}
    for entry, raw in table.items():
        inner = [
            replace(key, name=key.name.removeprefix(f"{entry}."))
            for key in keys
            if key.name.startswith(f"{entry}.")
        ]
        if inner:
            body = subtable(table, entry, inside=name)
            values |= _values(inner, body, f"{name[:-1]}.{entry}]", base, environment)
            continue
        key = _fitting(keys, entry, raw)
        value = expanded(raw, f"{name} {entry}", environment)
        values[key.attribute] = key.kind.parse(value, key.place(name, base))
    for key in keys:
        if key.is_required and key.attribute not in values:
            raise JobError(f"{name} has no {key.name}; for example {key.name} = {key.example}")
    return values


def _fitting(keys: Sequence[DeclaredKey], name: str, value: object) -> DeclaredKey:
    """The key of this name; of two, the one for lists if the value is one."""
    named = [key for key in keys if key.name == name]
    return next((key for key in named if isinstance(key.kind, ListOf) == is_list(value)), named[0])


def subtable(
    table: Mapping[str, Any], name: str, *, inside: str = "", required: bool = True
) -> Mapping[str, Any]:
    """A table of a document, or of a table inside it."""
    header = f"{inside[:-1]}.{name}]" if inside else f"[{name}]"
    if name not in table:
        if required:
            raise JobError(f"there is no {header} table")
        return {}
    body = table[name]
    if not isinstance(body, Mapping):
        raise JobError(f"{name} must be a table: {header}")
    return body
