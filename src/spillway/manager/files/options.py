"""Which files of a path are an input, and how many of them one batch takes: Spark's options, read once.

Only options on this list are understood. `read_options` gives None for any other, and for values that Spark
may read in its own way; such an input is left to Structured Streaming.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spillway.manager.files.glob import PatternError, compiled, is_pattern, segments

UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
WEEK_MS = 7 * UNITS_MS["d"]
SCHEMES = frozenset({"s3", "s3a", "gs", "abfs", "abfss"})
"""Stores other than this machine whose files pyarrow lists."""
LISTING_OPTIONS = frozenset(
    {
        "path",
        "basepath",
        "latestfirst",
        "maxbytespertrigger",
        "maxfileage",
        "maxfilespertrigger",
        "pathglobfilter",
        "recursivefilelookup",
    }
)
"""In lower case, as names of options are compared."""


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """One input's files."""

    path: str
    """Absolute; may be a pattern."""
    base_path: str | None = None
    """Directories `column=value` below it are columns of a pattern's files; None: none are."""
    name_filter: str | None = None
    recursive: bool = False
    latest_first: bool = False
    max_age_ms: int | None = None
    """Files that are older than the newest file read by more than this are ignored; None: none are."""
    max_files: int | None = None
    max_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.max_files is not None or self.max_bytes is not None

    @property
    def is_local(self) -> bool:
        return "://" not in self.path


def read_options(options: Mapping[str, str]) -> ListingOptions | None:
    """The options of a file source by their names in lower case; others than listing options are ignored."""
    try:
        return _read(options)
    except (PatternError, ValueError, KeyError):
        return None


def milliseconds(text: str) -> int:
    """A length of time, such as `500ms`, `10 seconds` or `7d`, in milliseconds; a ValueError for others."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if found is None:
        raise ValueError(text)
    unit = found[2] if found[2] in UNITS_MS else _SPELT.get(found[2].removesuffix("s"))
    if unit is None:
        raise ValueError(text)
    return int(int(found[1]) * UNITS_MS[unit])


_SPELT = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "sec": "s",
    "minute": "min",
    "hour": "h",
    "day": "d",
}


def _read(options: Mapping[str, str]) -> ListingOptions | None:
    path, base = _absolute(options["path"]), options.get("basepath")
    latest_first = _flag(options.get("latestfirst", "false"))
    max_files, max_bytes = (
        _count(options.get("maxfilespertrigger")),
        _count(options.get("maxbytespertrigger")),
    )
    if max_files is not None and max_bytes is not None:
        return None  # Spark refuses both
    base = None if base is None else _absolute(base)
    if base is not None and (base != path if not is_pattern(path) else not path.startswith(f"{base}/")):
        return None
    if is_pattern(path):
        for name in segments(path):
            compiled(name)
    name_filter = options.get("pathglobfilter")
    if name_filter is not None:
        compiled(name_filter)
    age = options.get("maxfileage")
    if age is not None and not re.fullmatch(r"\d+(us|ms|s|m|min|h|d)", age):
        return None
    is_aged = not (latest_first and (max_files or max_bytes))
    return ListingOptions(
        path=path,
        base_path=base,
        name_filter=name_filter,
        recursive=_flag(options.get("recursivefilelookup", "false")),
        latest_first=latest_first,
        max_age_ms=(int(WEEK_MS) if age is None else milliseconds(age)) if is_aged else None,
        max_files=max_files,
        max_bytes=max_bytes,
    )


def _absolute(path: str) -> str:
    scheme, mark, rest = path.partition("://")
    if mark and scheme in SCHEMES:
        return path.rstrip("/")
    plain = rest if mark and scheme == "file" else path
    odd = "%" in plain or "//" in plain or any(part in (".", "..") for part in plain.split("/"))
    if odd or not plain.startswith("/"):
        raise ValueError(path)  # Hadoop may make something else of it
    return plain.rstrip("/") or "/"


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,17}", text):
        raise ValueError(text)
    return int(text)
