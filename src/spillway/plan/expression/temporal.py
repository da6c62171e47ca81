"""Dates and times as Spark computes them: parts, differences, and shifts by the rules of the calendar.

Known limit: nothing here depends on the session's time zone. A `timestamp` is an instant, whose days, months
and hours do, so only shifts by less than a day are computed; a `timestamp_ntz` has its own date and hour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.types import spark_type

_LOCAL = pa.timestamp("us")
_DAY_US = 86_400_000_000
_LAST_DAY = (2**63 - 1) // _DAY_US - 1
_MONTHS: Mapping[str, int] = MappingProxyType({"month": 1, "year": 12})
_MICROSECONDS: Mapping[str, int] = MappingProxyType(
    {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": _DAY_US, "week": 7 * _DAY_US}
)
INTERVAL_UNITS = frozenset({*_MONTHS, *_MICROSECONDS})
_IN_ZONE = "it depends on the session's time zone; cast the columns to timestamp_ntz before they are combined"

_DATE_PARTS: Mapping[str, Callable[[pa.Array], pa.Array]] = MappingProxyType({
    "year": pc.year, "quarter": pc.quarter, "month": pc.month, "day": pc.day, "dayofyear": pc.day_of_year,
    "weekday": pc.day_of_week, "weekofyear": pc.iso_week,
    "dayofweek": lambda value: pc.add(pc.day_of_week(value, week_start=7), 1),
})  # fmt: skip
_TIME_PARTS: Mapping[str, Callable[[pa.Array], pa.Array]] = MappingProxyType(
    {"hour": pc.hour, "minute": pc.minute, "second": pc.second}
)
PARTS = frozenset({*_DATE_PARTS, *_TIME_PARTS})
_TRUNCATIONS: Mapping[str, str] = MappingProxyType({
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month",
    "mon": "month", "week": "week",
})  # fmt: skip


def part(name: str, value: pa.Array) -> pa.Array:
    """A part of a date or time, such as its year."""
    kinds = (pa.date32(), _LOCAL) if name in _DATE_PARTS else (_LOCAL,)
    _check(name, value, *kinds)
    kernel = _DATE_PARTS.get(name) or _TIME_PARTS[name]
    return pc.cast(kernel(value), pa.int32())


def shift(value: pa.Array, amount: int, unit: str) -> pa.Array:
    """`value` plus a number of units; the 31st of a shorter month is its last day."""
    kind = value.type
    if unit in _MONTHS:
        _check(f"{unit}s added", value, pa.date32(), _LOCAL)
        return _plus_months(value, amount * _MONTHS[unit])
    microseconds = amount * _MICROSECONDS[unit]
    if pa.types.is_date(kind) and unit in ("day", "week"):
        return plus_days(value, pa.array(np.full(len(value), microseconds // _DAY_US), pa.int32()))
    instant = pa.types.is_timestamp(kind) and kind.tz is not None and abs(microseconds) < _DAY_US
    _check(f"an interval of {unit}s added", value, kind if instant else _LOCAL)
    try:
        return pc.add_checked(pc.cast(value, pa.int64()), microseconds).cast(kind)
    except pa.ArrowInvalid:
        raise ViewError(f"a {spark_type(kind)} plus {amount} {unit}s is out of range") from None


def plus_days(value: pa.Array, days: pa.Array) -> pa.Array:
    """`date_add(value, days)`."""
    _check("date_add", value, pa.date32())
    if days.type not in (pa.int8(), pa.int16(), pa.int32()):
        raise ViewError(f"date_add by {spark_type(days.type)} is not supported; cast it to int")
    return pc.add(pc.cast(value, pa.int32()), pc.cast(days, pa.int32())).cast(pa.date32())


def minus_days(value: pa.Array, days: pa.Array) -> pa.Array:
    """`date_sub(value, days)`."""
    if days.type not in (pa.int8(), pa.int16(), pa.int32()):
        raise ViewError(f"date_sub by {spark_type(days.type)} is not supported; cast it to int")
    return plus_days(value, pc.negate(pc.cast(days, pa.int32())))


def days_between(end: pa.Array, start: pa.Array) -> pa.Array:
    """`datediff(end, start)`."""
    for value in (end, start):
        _check("datediff", value, pa.date32())
    return pc.subtract(*(pc.cast(value, pa.int32()) for value in (end, start)))


def truncate(value: pa.Array, unit: str) -> pa.Array:
    """`trunc(value, unit)`: the first day of the year, quarter, month or week."""
    _check("trunc", value, pa.date32())
    if unit.lower() not in _TRUNCATIONS:
        raise ViewError(f"trunc to {unit!r} is not supported; use year, quarter, month or week")
    return pc.floor_temporal(value, unit=_TRUNCATIONS[unit.lower()], week_starts_monday=True)


def _plus_months(value: pa.Array, months: int) -> pa.Array:
    kind = value.type
    moment = pc.fill_null(pc.cast(value, pa.int32() if pa.types.is_date(kind) else pa.int64()), 0)
    numbers = moment.to_numpy(zero_copy_only=False).astype(np.int64)
    unit = 1 if pa.types.is_date(kind) else _DAY_US
    day_number, time = np.divmod(numbers, unit)
    dates = day_number.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    shifted = month + months
    first, following = shifted.astype("datetime64[D]"), (shifted + 1).astype("datetime64[D]")
    moved = first + np.minimum(dates - month.astype("datetime64[D]"), following - first - 1)
    days = moved.astype(np.int64)
    if np.abs(days).max(initial=0) > _LAST_DAY:
        raise ViewError(f"a {spark_type(kind)} plus {months} months is out of range")
    result = days * unit + time
    narrow = pa.int32() if pa.types.is_date(kind) else pa.int64()
    return pc.if_else(value.is_valid(), pa.array(result).cast(narrow), pa.scalar(None, narrow)).cast(kind)


def _check(what: str, value: pa.Array, *kinds: pa.DataType) -> None:
    if value.type in kinds:
        return
    if pa.types.is_timestamp(value.type):
        raise ViewError(f"{what}: of a {spark_type(value.type)} {_IN_ZONE}")
    raise ViewError(f"{what}: {spark_type(value.type)} is not supported; cast it to {spark_type(kinds[0])}")
