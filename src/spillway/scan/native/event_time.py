"""Event times in microseconds, as plans of windows and statistics ask Spark for them."""

from __future__ import annotations

import re

_NAME = r"(`(?:[^`]|``)+`)"
_MICROSECONDS = (
    ("timestamp", re.compile(rf"unix_micros\({_NAME}\)")),
    (
        "timestamp_ntz",
        re.compile(rf"timestampdiff\(MICROSECOND, CAST\('1970-01-01 00:00:00' AS TIMESTAMP_NTZ\), {_NAME}\)"),
    ),
)


def event_column(sql: str) -> tuple[str, str] | None:
    """The column whose microseconds since 1970 `sql` is, quoted, and its type; None for anything else."""
    for type_, form in _MICROSECONDS:
        if found := form.fullmatch(sql):
            return found[1], type_
    return None
