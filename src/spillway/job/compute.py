"""The job file of `spillway compute`: a view, its stored sources, `[compute]`, and where the result goes.

Sources, sink, view and Spark settings are written as in any job file; a file may have both `[run]` and
`[compute]`. Everything is checked before anything starts.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.compute import ComputeConfig
from spillway.errors import JobError
from spillway.job.job import TABLES, read_spark, read_view
from spillway.job.sources import SinkSpec, SourceSpec, read_sink, read_sources
from spillway.job.table import known, read_job_file, refuse_maintain_job, subtable
from spillway.model import View, parse_bytes

SPARK_DEFAULTS = {
    "spark.scheduler.mode": "FAIR",  # segments run side by side
    "spark.driver.memory": "4g",  # hash tables live in the JVM here
    "spark.buffer.pageSize": "1m",  # the smallest hash table; the default is 32 MB
    "spark.sql.adaptive.enabled": "true",  # for Spark's own plan; our trees run without it
}
"""Settings with which a session for computing starts, unless the job file says otherwise."""
SINKS = ("parquet", "delta", "count")
MODES = ("error", "overwrite")
_KEYS = ("way", "tree", "memory", "processors", "sample", "rows", "selectivity")


@dataclass(frozen=True, slots=True)
class ComputeJob:
    view: View
    sources: Mapping[str, SourceSpec]
    compute: ComputeConfig
    sink: SinkSpec
    spark: Mapping[str, str]


def is_compute_job(path: str | Path) -> bool:
    """Whether a job file is for `spillway compute` only; False if the file cannot be read."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "compute" in document and "run" not in document


def read_compute_job(path: str | Path) -> ComputeJob:
    return read_job_file(path, parse_compute_job)


def parse_compute_job(document: Mapping[str, Any], base: Path) -> ComputeJob:
    refuse_maintain_job(document)
    known(document, TABLES, "the job file")
    sink = read_sink(subtable(document, "sink", required=False), base)
    check_sink(sink)
    return ComputeJob(
        view=read_view(subtable(document, "view"), base),
        sources=read_sources(subtable(document, "sources"), base),
        compute=_compute(subtable(document, "compute", required=False)),
        sink=sink,
        spark=read_spark(document),
    )


def check_sink(sink: SinkSpec) -> None:
    """Refuse a sink that a computed view cannot be written to."""
    if sink.format not in SINKS:
        raise JobError(f'[sink] format = "{sink.format}": a computed view goes to {", ".join(SINKS)}')
    if sink.format != "count" and sink.path is None:
        raise JobError('[sink] has no path; for example path = "out"')
    known(sink.options, ("mode",), "[sink] options")
    if sink.options.get("mode", MODES[0]) not in MODES:
        raise JobError(f'[sink] mode = "{sink.options["mode"]}": must be one of {", ".join(MODES)}')


def _compute(table: Mapping[str, Any]) -> ComputeConfig:
    known(table, _KEYS, "[compute]")
    values: dict[str, Any] = {}
    values |= {key: str(table[key]) for key in ("way", "tree") if key in table}
    if "memory" in table:
        values["memory_bytes"] = parse_bytes(table["memory"], "[compute] memory")
    for key, kind in (("processors", int), ("sample", (int, float))):
        if key in table:
            if not isinstance(table[key], kind) or isinstance(table[key], bool):
                raise JobError(f"[compute] {key} = {table[key]!r}: must be a number")
            values[key] = table[key]
    for key in ("rows", "selectivity"):
        if key in table:
            values[key] = _numbers(table[key], f"[compute.{key}]")
    return ComputeConfig(**values)


def _numbers(table: object, where: str) -> dict[str, float]:
    if not isinstance(table, Mapping):
        raise JobError(f"{where} must be a table of numbers")
    for key, value in table.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise JobError(f"{where} {key} = {value!r}: must be a number")
    return {str(key): float(value) for key, value in table.items()}
