"""The event time of a source: which column, and how late its rows may be."""

from __future__ import annotations

import re
from dataclasses import replace

from spillway.job import SourceSpec
from spillway.model import Column
from spillway.plan.typing import NeedsSparkError

_LATENESS = re.compile(r"(\d{1,9}) (millisecond|second|minute|hour|day|week)s?")
_MICROSECONDS = {
    "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip


def with_event_time(columns: tuple[Column, ...], spec: SourceSpec) -> tuple[Column, ...]:
    """The columns, with the lateness at the one that has the event time."""
    if spec.event_time is None:
        return columns
    lateness = _LATENESS.fullmatch(spec.lateness)
    named = [column for column in columns if column.name.lower() == spec.event_time.lower()]
    is_time = len(named) == 1 and named[0].type == "timestamp"
    if lateness is None or not is_time or re.fullmatch(r"\w+", spec.event_time) is None:
        raise NeedsSparkError(
            f"[sources.{spec.name}] event_time = {spec.event_time!r}, lateness = {spec.lateness!r}"
        )
    delay = int(lateness[1]) * _MICROSECONDS[lateness[2]]
    return tuple(replace(column, lateness_us=delay) if column is named[0] else column for column in columns)
