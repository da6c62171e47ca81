"""Columns in the names of directories, `column=value`: their names, and their values as Spark types them.

Known limit: only values whose text has one reading are taken (strings, whole numbers without leading zeroes,
ISO dates); others are left to Spark.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from urllib.parse import unquote

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"0|-?[1-9]\d{0,18}")
_BEYOND_ASCII = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")
"""Spark takes each such byte for a character, where others read UTF-8."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_BITS: Mapping[str, int] = MappingProxyType({"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64})


def path_partitions(path: str, root: str) -> tuple[tuple[str, str | None], ...] | None:
    """The columns in the directories of `path` below `root`; None if only Spark can tell which they are."""
    try:
        directories = PurePosixPath(path).relative_to(PurePosixPath(root)).parts[:-1]
    except ValueError:
        return None
    if not any("=" in name for name in directories):
        return ()
    pairs = [name.partition("=") for name in directories]
    names = {name.lower() for name, _, _ in pairs}
    if any(not name or not value for name, _, value in pairs) or len(names) < len(pairs):
        return None
    if any(_BEYOND_ASCII.search(name) for name in directories):
        return None
    return tuple(
        (unquote(name), None if value == NULL_DIRECTORY else unquote(value)) for name, _, value in pairs
    )


def partition_value(text: str | None, type_: str) -> str | int | dt.date | None:
    """The value that Spark reads from `text`; ValueError if only Spark can tell."""
    if text is None or type_ == "string":
        return text
    if type_ in _BITS and _WHOLE.fullmatch(text):
        number, limit = int(text), 1 << (_BITS[type_] - 1)
        if -limit <= number < limit:
            return number
    if type_ == "date" and _DATE.fullmatch(text):
        return dt.date.fromisoformat(text)
    raise ValueError(f"only Spark reads {text!r} as {type_}")
