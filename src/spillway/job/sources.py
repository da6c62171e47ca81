"""The tables `[sources.NAME]` and `[sink]` of a job file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from spillway.errors import JobError
from spillway.job.keys import Key
from spillway.job.kinds import Duration, FilePath, OneOf, Settings, Text

SINK_FORMATS = ("delta", "parquet", "console", "memory", "count")
NO_LATENESS = "0 seconds"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A stream or stored relation that Spark reads."""

    name: str
    format: Annotated[
        str,
        Key(
            Text(),
            "Spark's name of the format. `run` takes any streaming format, `delta` and `arrow` (Arrow IPC "
            "files) on this machine, and `workload` for generated rows; `compute` takes parquet, orc, csv, "
            "json, delta, table, duckdb and sqlite.",
            example='"parquet"',
        ),
    ]
    path: Annotated[str | None, Key(FilePath(), "Where the files are.", unset="none")] = None
    schema: Annotated[
        str | None,
        Key(
            Text('columns, such as `"k long, id long"`'),
            "The columns and their types, as Spark writes them.",
            unset="what Parquet and ORC files say; other formats need it",
        ),
    ] = None
    options: Annotated[
        Mapping[str, str], Key(Settings(), "Options of the format, passed on to Spark.", unset="none")
    ] = field(default_factory=dict)
    event_time: Annotated[
        str | None, Key(Text(), "The timestamp column that windows go by.", unset="none")
    ] = None
    lateness: Annotated[
        str, Key(Duration(), "How late a row may arrive and still count. Needs `event_time`.")
    ] = NO_LATENESS

    def __post_init__(self) -> None:
        if self.lateness != NO_LATENESS and self.event_time is None:
            raise JobError(f'[sources.{self.name}] has lateness but no event_time; add event_time = "column"')


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """Where results go."""

    format: Annotated[
        str,
        Key(
            OneOf(SINK_FORMATS),
            "`delta` and `parquet` store each result exactly once; `memory` is a temporary view of Spark; "
            "`console` prints the first rows of each epoch; `count` only counts. "
            "`compute` writes to delta, parquet or count.",
        ),
    ] = "delta"
    path: Annotated[
        str | None, Key(FilePath(), "The directory or URI of delta and parquet.", unset="none")
    ] = None
    options: Annotated[
        Mapping[str, str],
        Key(
            Settings(),
            "`delta`: table properties `delta.*`, and storage options for a URI. `memory`: `name`. "
            "`console`: `numRows`, `truncate`. `compute`: `mode`, error or overwrite.",
            unset="none",
        ),
    ] = field(default_factory=dict)
