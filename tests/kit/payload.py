"""Values of every type that state can hold, made from a row's number: histories name the kind and stay short.

A fifth of the values are null, lengths vary, and nested values hold nulls and empty parts themselves.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

WIDTH = 300
"""The longest string; a few rows of it fill a round or a small merge."""


def text(number: int) -> str:
    return f"{number}ä" * (number * 7 % WIDTH // 4)


def nested(number: int) -> list[dict[str, Any] | None]:
    parts: list[dict[str, Any] | None] = [
        {"d": Decimal(number + part).scaleb(-3), "s": text(part), "n": [number, None][: part % 3]}
        for part in range(number % 4)
    ]
    return [*parts, None] if number % 3 else parts


EPOCH = datetime(2024, 2, 29, 23, 59, 59, 999_999)
NESTED = pa.list_(
    pa.struct([("d", pa.decimal128(20, 3)), ("s", pa.string()), ("n", pa.list_(pa.int64()))]),
)
KINDS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "binary": (pa.binary(), lambda n: text(n).encode()),
    "boolean": (pa.bool_(), lambda n: n % 2 == 0),
    "byte": (pa.int8(), lambda n: n % 256 - 128),
    "date": (pa.date32(), lambda n: date(1969, 12, 30) + timedelta(n)),
    "decimal": (pa.decimal128(38, 18), lambda n: Decimal(f"{10**19 + n}.{n:018d}")),
    "double": (pa.float64(), lambda n: [n / 7, -0.0, float("inf")][n % 3]),
    "float": (pa.float32(), lambda n: n / 8),
    "interval": (pa.duration("us"), lambda n: timedelta(days=-n, microseconds=n)),
    "list": (pa.list_(pa.string()), lambda n: [text(part) for part in range(n % 4)]),
    "local timestamp": (pa.timestamp("us"), lambda n: EPOCH + timedelta(microseconds=n)),
    "map": (pa.map_(pa.string(), pa.int64()), lambda n: [(f"k{part}", n) for part in range(n % 3)]),
    "nested": (NESTED, nested),
    "small decimal": (pa.decimal128(9, 2), lambda n: Decimal(n).scaleb(-2)),
    "string": (pa.string(), text),
    "struct": (pa.struct([("a", pa.int32()), ("b", pa.string())]), lambda n: {"a": n, "b": text(n)}),
    "time": (pa.time64("us"), lambda n: time(23, 59, n % 60, n)),
    "timestamp": (pa.timestamp("us", "UTC"), lambda n: EPOCH.replace(tzinfo=UTC) + timedelta(n)),
}


def kind_type(kind: str) -> pa.DataType:
    return KINDS[kind][0]


def value(kind: str, number: int) -> Any:
    """The payload of row `number`, as Arrow gives it back."""
    return column(kind, [number])[0].as_py()


def column(kind: str, numbers: Sequence[int | None]) -> pa.Array:
    """The payloads of these rows; None is a row of another input."""
    data_type, make = KINDS[kind]
    return pa.array([None if n is None or n % 5 == 3 else make(n) for n in numbers], data_type)
