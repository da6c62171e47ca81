"""The files of a directory as Spark lists them, and the columns that directories such as `k=1` add.

Spark ignores hidden names. Without directories `k=1` it reads only the files directly inside.
Known limit: Spark infers the types of values in names by many rules; here they are whole numbers, dates and
words, all of one kind, or Spark has to be asked.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spillway.model import Column
from spillway.plan.typing import NeedsSparkError

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
_NUMBER = re.compile(r"-?[1-9]\d{0,17}|0")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WORD = re.compile(r"[A-Za-z][A-Za-z_]*")
_NOT_WORDS = frozenset({"nan", "infinity", "inf", "now", "today", "tomorrow", "yesterday", "epoch", "null"})
"""Numbers and times to Spark, or they were once."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files that Spark reads, in Spark's order, and the columns in the names of their directories."""

    paths: tuple[str, ...]
    partitions: tuple[Column, ...] = ()


def list_files(root: str) -> SourceFiles:
    """The files of the directory, or the file, `root`."""
    if os.path.isfile(root):  # noqa: PTH113 - paths stay text, as Spark writes them
        return SourceFiles((root,))
    found = list(_walk(root, ()))
    if not any("=" in name for directories, _ in found for name in directories):
        found = [(directories, path) for directories, path in found if not directories]
        return SourceFiles(_ordered(found))
    return SourceFiles(_ordered(found), _partitions([directories for directories, _ in found], root))


def _ordered(found: Sequence[tuple[tuple[str, ...], str]]) -> tuple[str, ...]:
    return tuple(
        sorted((path for _, path in found), key=lambda path: path.encode("utf-16-be", "surrogatepass"))
    )


def _walk(directory: str, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The files below, each with the names of its directories."""
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if name == "_spark_metadata" or name.startswith(("_metadata", "_common_metadata")):
                raise NeedsSparkError(f"{directory} has {name}, which tells Spark what to read")
            if (
                name.startswith(".")
                or (name.startswith("_") and "=" not in name)
                or name.endswith("._COPYING_")
            ):
                continue
            if entry.is_dir():
                yield from _walk(entry.path, (*above, name))
            else:
                yield above, entry.path


def _partitions(directories: Sequence[tuple[str, ...]], root: str) -> tuple[Column, ...]:
    pairs = [[name.partition("=")[::2] for name in names] for names in directories]
    names = [[name for name, _ in of_file] for of_file in pairs]
    first = names[0]
    if any(other != first for other in names) or len({name.lower() for name in first}) < len(first):
        raise NeedsSparkError(f"{root} has directories that only Spark can tell apart")
    if not all(re.fullmatch(r"\w+", name) for name in first):
        raise NeedsSparkError(f"{root} has directories that only Spark can tell apart")
    return tuple(
        Column(name, _value_type({of_file[number][1] for of_file in pairs}, root))
        for number, name in enumerate(first)
    )


def _value_type(values: set[str], root: str) -> str:
    given = values - {NULL_VALUE}
    if given and all(_NUMBER.fullmatch(value) for value in given):
        return "int" if all(-(2**31) <= int(value) < 2**31 for value in given) else "bigint"
    if given and all(_is_date(value) for value in given):
        return "date"
    if given and all(_WORD.fullmatch(value) and value.lower() not in _NOT_WORDS for value in given):
        return "string"
    raise NeedsSparkError(f"{root} has directories whose values only Spark can type")


def _is_date(value: str) -> bool:
    try:
        return _DATE.fullmatch(value) is not None and bool(dt.date.fromisoformat(value))
    except ValueError:
        return False
