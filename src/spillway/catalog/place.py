"""Where the files of a source are, and what Spark is told about them.

A path without a scheme is on this machine, unless a Hadoop configuration says otherwise. Settings that may
change what a source has are left to Spark; so are options that are not listed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from spillway.errors import SourceError
from spillway.job import SourceSpec, ignored_options
from spillway.plan.typing import NeedsSparkError

_GLOB = frozenset("{}[]*?\\")
_ELSEWHERE = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE")
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(, *[1-9]\d*)?\])?")
_VALUE = re.compile(r"true|false|-?\d+(\.\d+)?|\d+[kmgtKMGT][bB]?|\d+(ms|s|m|min|h|d)")
_SETTINGS = re.compile(
    r"spark\.(driver\.(memory|cores|maxResultSize)|executor\.(memory|cores|instances)|default\.parallelism|"
    r"sql\.shuffle\.partitions|sql\.adaptive\..+|sql\.autoBroadcastJoinThreshold|sql\.files\.maxPartitionBytes|"
    r"sql\.streaming\.(minBatchesToRetain|numRecentProgressUpdates)|buffer\.pageSize|ui\..+|locality\.wait|"
    r"shuffle\..+|memory\..+|task\..+|network\.timeout)"
)
"""Numbers, sizes, times and switches that change no type."""
_WORDS = re.compile(r"spark\.(app\.name|local\.dir)")
_OPTIONS = re.compile(
    r"maxfilespertrigger|maxbytespertrigger|maxfileage|latestfirst|header|sep|delimiter|quote|escape|mode|nullvalue|"
    r"emptyvalue|encoding|charset|dateformat|timestampformat|timestampntzformat|comment|multiline|enforceschema|"
    r"columnpruning|ignoreleadingwhitespace|ignoretrailingwhitespace"
)


_DELTA = {
    "spark.jars.packages": re.compile(r"io\.delta:delta-spark_[\w.]+:[\w.-]+"),
    "spark.sql.extensions": re.compile(r"io\.delta\.sql\.DeltaSparkSessionExtension"),
    "spark.sql.catalog.spark_catalog": re.compile(r"org\.apache\.spark\.sql\.delta\.catalog\.DeltaCatalog"),
}
"""The settings with which Spark reads Delta tables as streams."""


def reads_delta(settings: Mapping[str, str]) -> bool:
    """Whether Spark would read Delta tables as streams; it has no reader of its own for them."""
    return all(key in settings and value.fullmatch(settings[key]) for key, value in _DELTA.items())


def check_settings(settings: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Leave a job to Spark whose settings might change types, or where paths lead."""
    for name in _ELSEWHERE:
        if environ.get(name):
            raise NeedsSparkError(f"{name} is set")
    for key, value in settings.items():
        if key == "spark.master":
            is_known = _LOCAL.fullmatch(value) is not None
        elif key in _DELTA:
            is_known = reads_delta(settings)
        else:
            is_known = bool(_WORDS.fullmatch(key) or (_SETTINGS.fullmatch(key) and _VALUE.fullmatch(value)))
        if not is_known:
            raise NeedsSparkError(f"[spark] sets {key}")


def check_options(spec: SourceSpec) -> None:
    """Leave a source to Spark that has options which might change its columns."""
    ignored = ignored_options(spec.format, spec.options, f"[sources.{spec.name}]")
    for key in spec.options:
        if key not in ignored and not _OPTIONS.fullmatch(key.lower()):
            raise NeedsSparkError(f"[sources.{spec.name}] has the option {key}")


def check_path(spec: SourceSpec) -> None:
    """Refuse a source without files."""
    where = f"[sources.{spec.name}]"
    if spec.path is None:
        raise SourceError(f'{where} has format "{spec.format}" but no path; add path = "..."')
    if urlsplit(spec.path).scheme in ("", "file") and not any(c in spec.path for c in "*?[{"):
        path = Path(spec.path.removeprefix("file://"))
        if not path.exists():
            raise SourceError(f"{where} path {path} does not exist; create it, or correct the path")


def local_path(spec: SourceSpec) -> str:
    """The path of a source on this machine."""
    assert spec.path is not None
    path = spec.path.removeprefix("file://")
    if not path.startswith("/") or ":" in path or "%" in path or set(path) & _GLOB:
        raise NeedsSparkError(f"[sources.{spec.name}] path = {spec.path} is not a plain one on this machine")
    return str(Path(path))
