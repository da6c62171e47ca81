"""Records as JSON and back, by the types of their fields.

A dataclass is written as an object whose keys are its fields. A named tuple, or a dataclass that is `listed`,
is written as an array of its fields. Fields are int, float, str, bool, enums, records, unions of them (with
None, too), tuples, lists, and mappings with int or str keys. `Annotated[type, WrittenAs(...)]` writes a field
as another type: sets of groups are hexadecimal digits, for example.

What is read must fit: an unknown key, a missing key without a default, or a value of another type is refused
by its name. A class is examined once; the functions that write and read it are kept.
Limit: a record cannot contain records of its own class.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from spillway.errors import StateError

T = TypeVar("T")
_OTHER_VERSION = "use the version of Spillway that wrote it"
_ORDER = "_listed_fields"
_PLAIN: Mapping[Any, set[type]] = {int: {int}, float: {float, int}, str: {str}, bool: {bool}}
_NAMES = {NoneType: "null", list: "array", dict: "object"}
_MANY = 8
"""From this many on, records are read column by column."""
_COMPACT = json.JSONEncoder(separators=(",", ":"), check_circular=False)


@dataclass(frozen=True, slots=True)
class WrittenAs:
    """In `Annotated`: the value becomes one of another type before it is written."""

    type: Any
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def listed(order: str = "") -> Callable[[type[T]], type[T]]:
    """Write a dataclass as an array: its fields in their order, or in the order that is given."""

    def mark(kind: type[T]) -> type[T]:
        setattr(kind, _ORDER, tuple(order.split()))
        return kind

    return mark


def to_json(record: Any) -> Any:
    """The record as a value for `json`, which makes keys that are numbers strings."""
    kind: Any = type(record)
    write = _codec(kind, False).write
    return record if write is None else write(record)


def from_json(
    kind: type[T], value: object, where: str, *, remedy: str = _OTHER_VERSION, newer: bool = False
) -> T:
    """The record that a JSON value stands for. If it does not fit, the message begins with `where`.

    `newer`: a later version may have written it, so unknown keys are left out.
    """
    try:
        record: T = _read(_codec(kind, newer), value)  # type: ignore[arg-type]
    except _MisfitError as misfit:
        what = f"key '{'.'.join(misfit.path)}'" if misfit.path else "it"
        raise StateError(f"{where}: {what} {misfit.problem}; {remedy}") from None
    return record


def compact(value: Any) -> str:
    """A JSON value as text without spaces."""
    return _COMPACT.encode(value)


def to_text(record: Any) -> str:
    return compact(to_json(record))


def from_text(kind: type[T], text: str) -> T:
    """The record that another process of the run sent."""
    where = f"a {kind.__name__} that another process sent cannot be read"
    return from_json(kind, json.loads(text), where, remedy="use one version of Spillway on all machines")


class _MisfitError(Exception):
    def __init__(self, problem: str, *path: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path


def _misfit(value: object, wanted: str) -> _MisfitError:
    shown = repr(value)
    return _MisfitError(f"is {shown if len(shown) <= 40 else shown[:37] + '...'}, not {wanted}")


class _Codec(NamedTuple):
    """How values of one type are written and read."""

    write: Callable[[Any], Any] | None
    """None: as they are."""
    types: frozenset[type]
    """What they are in JSON. Whoever calls `read` has looked at the type."""
    read: Callable[[Any], Any] | None
    """None: as they are."""
    read_all: Callable[[Collection[Any]], Iterable[Any]] | None = None
    """Read many at once, if that is faster."""


def _read(codec: _Codec, value: Any, *path: str) -> Any:
    """A value of any type; `path` is where it is."""
    try:
        if type(value) not in codec.types:
            raise _misfit(value, " or ".join(sorted(_NAMES.get(kind, kind.__name__) for kind in codec.types)))
        return value if codec.read is None else codec.read(value)
    except _MisfitError as misfit:
        if not path:
            raise
        raise _MisfitError(misfit.problem, *path, *misfit.path) from None


def _read_all(codec: _Codec, values: Collection[Any]) -> Iterable[Any]:
    if not codec.types.issuperset(map(type, values)):
        return [_read(codec, value) for value in values]
    if codec.read_all is not None:
        return codec.read_all(values)
    return values if codec.read is None else map(codec.read, values)


class _Numbers(dict[str, int]):
    def __missing__(self, text: str) -> int:
        return int(text)


_SMALL = _Numbers({str(number): number for number in range(1024)})
"""Numbers of groups and processors: to look one up takes half the time of `int`."""


@cache
def _codec(kind: Any, newer: bool) -> _Codec:
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _Codec(None, frozenset(_PLAIN[kind]), None)
    if origin is Annotated:
        return _written_as(parts[1], _codec(parts[1].type, newer))
    if origin in (Union, UnionType):
        codecs = [_codec(part, newer) for part in parts if part is not NoneType]
        codec = codecs[0] if len(codecs) == 1 else _union(codecs)
        return _optional(codec) if NoneType in parts else codec
    if origin is list or (origin is tuple and parts[1:] == (...,)):
        return _sequence(origin, _codec(parts[0], newer))
    if origin is tuple:
        return _array({str(place): _codec(part, newer) for place, part in enumerate(parts)}, len(parts))
    if origin is not None:
        return _mapping(parts[0], _codec(parts[1], newer))
    if issubclass(kind, Enum):
        types = frozenset(type(member.value) for member in kind)
        return _written_as(WrittenAs(None, attrgetter("value"), kind), _Codec(None, types, None))
    return _record(kind, newer)


def _record(kind: Any, newer: bool) -> _Codec:
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, tuple):
        items = {name: _codec(hints[name], newer) for name in kind._fields}
        return _array(items, len(items) - len(kind._field_defaults), kind)
    items = {field.name: _codec(hints[field.name], newer) for field in fields(kind)}
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    order = getattr(kind, _ORDER, None)
    if order is None:
        return _object(kind, items, needed, newer)
    if not order:
        return _array(items, len(needed), kind, attrgetter(*items))
    items = {name: items[name] for name in order}
    arranged = itemgetter(*(order.index(field.name) for field in fields(kind)))
    return _array(items, len(items), lambda *values: kind(*arranged(values)), attrgetter(*order))


def _written_as(form: WrittenAs, codec: _Codec) -> _Codec:
    first, then = form.write, codec.write

    def read(value: Any) -> Any:
        try:
            return form.read(value if codec.read is None else codec.read(value))
        except ValueError as error:
            raise _misfit(value, f"allowed: {error}") from None

    def read_all(values: Collection[Any]) -> Iterable[Any]:
        try:
            return list(map(form.read, _read_all(codec, values)))
        except ValueError:
            return map(read, values)

    return _Codec(first if then is None else lambda value: then(first(value)), codec.types, read, read_all)


def _optional(codec: _Codec) -> _Codec:
    write, read = codec.write, codec.read
    return _Codec(
        None if write is None else lambda value: None if value is None else write(value),
        codec.types | {NoneType},
        None if read is None else lambda value: None if value is None else read(value),
    )


def _union(codecs: Sequence[_Codec]) -> _Codec:
    """Of records: the first that fits."""
    *others, last = codecs

    def read(value: Any) -> Any:
        for codec in others:
            try:
                return _read(codec, value)
            except _MisfitError:
                pass
        return _read(last, value)

    return _Codec(to_json, frozenset().union(*(codec.types for codec in codecs)), read)


def _sequence(make: Callable[[Iterable[Any]], Any], item: _Codec) -> _Codec:
    write = item.write
    return _Codec(
        list if write is None else lambda values: [write(value) for value in values],
        frozenset({list}),
        lambda values: make(_read_all(item, values)) if values else make(()),
    )


def _mapping(key: type, item: _Codec) -> _Codec:
    write = item.write

    read_key = _SMALL.__getitem__ if key is int else key

    def read(body: Any) -> Any:
        try:
            return dict(zip(map(read_key, body), _read_all(item, body.values()), strict=True)) if body else {}
        except ValueError:
            raise _MisfitError(f"has a key that is not {key.__name__}") from None

    return _Codec(
        None if write is None else lambda body: {at: write(body[at]) for at in body}, frozenset({dict}), read
    )


def _array(
    items: Mapping[str, _Codec],
    needed: int,
    make: Callable[..., Any] | None = None,
    get: Callable[[Any], Iterable[Any]] | None = None,
) -> _Codec:
    """`make` gets the items; None: they stay a tuple. `get` gives them; None: the record is a tuple."""
    writers = [(place, codec.write) for place, codec in enumerate(items.values()) if codec.write is not None]
    read = _row_reader(items, needed, make or (lambda *values: values))

    def write(record: Any) -> list[Any]:
        values = list(record if get is None else get(record))
        for place, write_item in writers:
            values[place] = write_item(values[place])
        return values

    def read_all(rows: Collection[Any]) -> Iterable[Any]:
        """Many of them column by column, which takes fewer calls."""
        if len(rows) < _MANY or set(map(len, rows)) != {len(items)}:
            return map(read, rows)
        try:
            columns = map(_read_all, items.values(), zip(*rows, strict=True))
            return list(zip(*columns, strict=True) if make is None else map(make, *columns))
        except _MisfitError:
            return map(read, rows)

    return _Codec(None if get is None and not writers else write, frozenset({list}), read, read_all)


def _object(kind: Any, items: Mapping[str, _Codec], needed: set[str], newer: bool) -> _Codec:
    names = tuple(items)
    get = attrgetter(*names) if len(names) > 1 else lambda record: (getattr(record, *names),)
    writers = [(name, codec.write) for name, codec in items.items() if codec.write is not None]
    is_positional = not any(field.kw_only for field in fields(kind))
    make = kind if is_positional else lambda *values: kind(**dict(zip(names, values, strict=True)))
    read_row = _row_reader(items, len(items), make)

    def write(record: Any) -> dict[str, Any]:
        body = dict(zip(names, get(record), strict=True))
        for name, write_item in writers:
            body[name] = write_item(body[name])
        return body

    def read(body: Any) -> Any:
        if tuple(body) == names:
            return read_row(list(body.values()))
        if missing := needed - body.keys():
            raise _MisfitError("is missing", next(name for name in names if name in missing))
        if (unknown := body.keys() - items.keys()) and not newer:
            raise _MisfitError("is unknown", min(unknown))
        return kind(**{name: _read(items[name], body[name], name) for name in names if name in body})

    return _Codec(write, frozenset({dict}), read)


def _row_reader(
    items: Mapping[str, _Codec], needed: int, make: Callable[..., Any]
) -> Callable[[list[Any]], Any]:
    seen: dict[tuple[type, ...], list[tuple[int, Callable[[Any], Any]]]] = {}
    """By the types of values that fitted: the places whose values are not taken as they are."""

    def examine(values: list[Any]) -> list[tuple[int, Callable[[Any], Any]]]:
        if not needed <= len(values) <= len(items):
            raise _misfit(values, f"an array of {len(items)}")
        found = list(zip(items.items(), values, strict=False))
        for (name, codec), value in found:
            _read(codec, value, name)
        return [(at, codec.read) for at, ((_, codec), _) in enumerate(found) if codec.read is not None]

    def read(values: list[Any]) -> Any:
        types = tuple(map(type, values))
        readers = seen.get(types)
        if readers is None:
            readers = seen[types] = examine(values)
        found = values.copy()
        try:
            for place, read_item in readers:
                found[place] = read_item(found[place])
        except _MisfitError:
            examine(values)  # names the place
            raise
        return make(*found)

    return read
