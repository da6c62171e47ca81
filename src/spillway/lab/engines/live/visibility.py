"""When each result file became visible: from the file system, after the run, so that nothing is polled.

Spark's Parquet sink writes files under their final names, but they count only once `_spark_metadata` lists
them: the modification time of the first log entry that does. Spillway moves complete files to their final
names, and Flink does so with a checkpoint: the change time of the file, which a rename sets. Known limit: the
file system's clock ticks every few milliseconds.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

Visible = dict[str, float]
_LOG_NAME = re.compile(r"(\d+)(\.compact)?")


def by_rename(results: Path, pattern: str = "*.parquet") -> Visible:
    """The files of a directory, by the time at which each got its name."""
    return {str(file): file.stat().st_ctime for file in results.glob(pattern)}


def by_spark_log(results: Path) -> Visible:
    """The files of Spark's file sink, by the commit of their batch."""
    visible: Visible = {}
    for entry in sorted(_entries(results / "_spark_metadata"), key=_batch):
        committed = entry.stat().st_mtime
        for path in logged_files(entry.read_text().splitlines()):
            visible.setdefault(path, committed)
    return visible


def logged_files(lines: Iterable[str]) -> Iterator[str]:
    """The paths in one entry of the log: a version, then a JSON object per file."""
    for line in lines:
        if line.startswith("{"):
            yield unquote(urlparse(json.loads(line)["path"]).path)


def _entries(directory: Path) -> Iterator[Path]:
    return (file for file in directory.iterdir() if _LOG_NAME.fullmatch(file.name))


def _batch(entry: Path) -> int:
    return int(entry.name.partition(".")[0])
