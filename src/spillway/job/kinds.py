"""The kinds of values in a job file. Each reads a TOML value, names its type, and has a JSON Schema.

Invariant: reading what was read gives the same value, so settings given in Python are checked by the same
kinds. A value that does not fit is one line: the table, the key, the value, and what to write.
"""

import difflib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn, Protocol

from spillway.errors import JobError
from spillway.job.environment import Expanded, as_written, kept_secret
from spillway.model import parse_bytes

Schema = dict[str, Any]
_MOST_SHOWN = 80
VARIABLE: Schema = {"type": "string", "pattern": r"\$\{"}
"""What an editor accepts for a number or a choice that comes from the environment."""


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Where a value stands: its table as users write it, its key, and what relative paths are relative to."""

    table: str
    name: str
    base: Path | None = None

    def __str__(self) -> str:
        return f"{self.table} {self.name}"

    def inside(self, key: str) -> "KeyPlace":
        """The place of a key in the table that stands here."""
        return replace(self, table=f"{self.table[:-1]}.{self.name}]", name=key)

    def refuse(self, value: object, wanted: str) -> NoReturn:
        raise JobError(f"{self} = {shown(value)}: {wanted}")


class ValueKind(Protocol):
    """What a key may be."""

    @property
    def type(self) -> str:
        """Its type in words, for the reference."""

    def parse(self, value: Any, place: KeyPlace) -> Any:
        """The value as the code uses it; a wrong one is refused."""

    def schema(self) -> Schema: ...


def shown(value: object) -> str:
    """A value as the job file writes it; one from the environment by the name of its variable."""
    text = as_written(value) if isinstance(value, str) else value
    line = json.dumps(text, ensure_ascii=False, default=str)
    return line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 3]}..."


def is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    type: str = "string"

    def parse(self, value: Any, place: KeyPlace) -> str:
        if not isinstance(value, str) or not value.strip():
            place.refuse(value, "must be a non-empty string")
        return kept_secret(value)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"\S"}


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time as Spark writes it."""

    type: str = 'duration, such as `"10 seconds"`'

    def parse(self, value: Any, place: KeyPlace) -> str:
        if not isinstance(value, str) or not any(character.isdecimal() for character in value):
            place.refuse(value, 'not a duration; write it like "10 seconds"')
        return kept_secret(value)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"\d|\$\{"}


@dataclass(frozen=True, slots=True)
class FilePath:
    """A path; a relative one is relative to the job file."""

    type: str = "path"

    def parse(self, value: Any, place: KeyPlace) -> str:
        text = Text().parse(os.fspath(value) if isinstance(value, os.PathLike) else value, place)
        if place.base is None or "://" in text:
            return text
        path = str(place.base / text)
        if not isinstance(text, Expanded):
            return path
        return Expanded(path, text.written if Path(text).is_absolute() else str(place.base / text.written))

    def schema(self) -> Schema:
        return Text().schema()


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """An integer between bounds, in a unit."""

    minimum: int
    maximum: int | None = None
    unit: str = ""

    @property
    def type(self) -> str:
        most = "" if self.maximum is None else f" and at most {self.maximum}"
        return f"{_counted('whole number', self.unit)}, at least {self.minimum}{most}"

    def parse(self, value: Any, place: KeyPlace) -> int:
        number = as_number(value, int)
        if not isinstance(number, Integral) or not self._fits(int(number)):
            place.refuse(value, f"must be a {self.type}")
        return int(number)

    def _fits(self, number: int) -> bool:
        return number >= self.minimum and (self.maximum is None or number <= self.maximum)

    def schema(self) -> Schema:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        return _or_variable({"type": "integer"} | {key: at for key, at in bounds.items() if at is not None})


@dataclass(frozen=True, slots=True)
class RealNumber:
    """A number between bounds, in a unit."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    unit: str = ""

    @property
    def type(self) -> str:
        bounds = {"above": self.above, "at least": self.minimum, "at most": self.maximum, "below": self.below}
        words = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return ", ".join([_counted("number", self.unit), *([" and ".join(words)] if words else [])])

    def parse(self, value: Any, place: KeyPlace) -> float:
        number = as_number(value, float)
        if not isinstance(number, Real) or not self._fits(float(number)):
            place.refuse(value, f"must be a {self.type}")
        return float(number)

    def _fits(self, number: float) -> bool:
        return (
            number == number
            and (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def schema(self) -> Schema:
        bounds = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "exclusiveMinimum": self.above,
            "exclusiveMaximum": self.below,
        }
        return _or_variable({"type": "number"} | {key: at for key, at in bounds.items() if at is not None})


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    type: str = "true or false"

    def parse(self, value: Any, place: KeyPlace) -> bool:
        if isinstance(value, Expanded) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        if not isinstance(value, bool):
            place.refuse(value, "must be true or false")
        return value

    def schema(self) -> Schema:
        return _or_variable({"type": "boolean"})


@dataclass(frozen=True, slots=True)
class ByteSize:
    """A number of bytes, or a string with a unit."""

    type: str = 'size, such as `"64MB"`'

    def parse(self, value: Any, place: KeyPlace) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 1e17 is a number of bytes too
        try:
            return parse_bytes(value, str(place))
        except JobError as error:
            if isinstance(value, Expanded):
                place.refuse(value, "not a size; set the variable to one like 64MB")
            raise error from None

    def schema(self) -> Schema:
        text = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*([KMGTkmgt][Bb]?|[Bb])?\s*$|\$\{"}
        return {"anyOf": [{"type": "number", "minimum": 1}, text]}


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some names; a registry gives them when they are asked for, so that it is loaded no earlier."""

    names: Sequence[str] | Callable[[], Sequence[str]]

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.names() if callable(self.names) else self.names)

    @property
    def type(self) -> str:
        return "one of " + ", ".join(f'`"{name}"`' for name in self.choices)

    def parse(self, value: Any, place: KeyPlace) -> str:
        choices = self.choices
        if not isinstance(value, str) or value not in choices:
            close = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else []
            hint = f'; did you mean "{close[0]}"?' if close else ""
            place.refuse(value, f"must be one of {', '.join(choices)}{hint}")
        return str(value)

    def schema(self) -> Schema:
        return _or_variable({"enum": list(self.choices)})


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one kind."""

    item: ValueKind

    @property
    def type(self) -> str:
        return f"list ({self.item.type})"

    def parse(self, value: Any, place: KeyPlace) -> tuple[Any, ...]:
        if not is_list(value):
            place.refuse(value, f"must be a {self.type.replace('`', '')}")
        return tuple(
            self.item.parse(entry, replace(place, name=f"{place.name}[{at}]"))
            for at, entry in enumerate(value)
        )

    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema()}


@dataclass(frozen=True, slots=True)
class OneOrList:
    """A single value of one kind, or a list of another."""

    single: ValueKind
    many: ListOf

    @property
    def type(self) -> str:
        others = "list of them" if self.many.item == self.single else self.many.type
        return f"{self.single.type}, or a {others}"

    def parse(self, value: Any, place: KeyPlace) -> Any:
        return (self.many if is_list(value) else self.single).parse(value, place)

    def schema(self) -> Schema:
        return {"anyOf": [self.single.schema(), self.many.schema()]}


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table whose keys are the user's, with values of one kind."""

    item: ValueKind

    @property
    def type(self) -> str:
        return f"table ({self.item.type})"

    def parse(self, value: Any, place: KeyPlace) -> dict[str, Any]:
        table = require_table(value, place)
        return {str(key): self.item.parse(entry, place.inside(key)) for key, entry in table.items()}

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.item.schema()}


@dataclass(frozen=True, slots=True)
class Settings:
    """A table of settings that are passed on as strings; `a.b = 1` and `"a.b" = 1` are the same."""

    type: str = "table of settings"

    def parse(self, value: Any, place: KeyPlace) -> dict[str, str]:
        return dict(self._flat(require_table(value, place), ""))

    def _flat(self, table: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
        found = []
        for key, value in table.items():
            if isinstance(value, Mapping):
                found += self._flat(value, f"{prefix}{key}.")
            elif isinstance(value, str):
                found.append((f"{prefix}{key}", kept_secret(value)))
            else:
                found.append(
                    (f"{prefix}{key}", str(value).lower() if isinstance(value, bool) else str(value))
                )
        return found

    def schema(self) -> Schema:
        return {"type": "object"}


def require_table(value: object, place: KeyPlace) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        place.refuse(value, f'must be a table: {place.name} = {{ key = "value" }}')
    return value


def as_number(value: object, convert: Callable[[str], object]) -> object:
    """The value; a number where the environment gives it as text; None for a flag, which is no number."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, Expanded):
        return value
    try:
        return convert(value)
    except ValueError:
        return value


def _counted(noun: str, unit: str) -> str:
    return f"{noun} of {unit}" if unit else noun


def _or_variable(schema: Schema) -> Schema:
    return {"anyOf": [schema, VARIABLE]}
