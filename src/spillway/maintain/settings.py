"""What maintaining a view needs to know: the view, its servers, which table each source is, its store.

The job file says it, and is checked before anything is opened (`job/maintain.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spillway.model import View


@dataclass(frozen=True, slots=True)
class TableLocation:
    """Where an input lives: the name of its server and its table there."""

    server: str
    table: str


AUTO = "auto"
SPARK = "spark"
KINDS = ("postgresql", "sqlite", "duckdb", "delta", SPARK)


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """`[servers.NAME]`; `place` is a DSN or a path."""

    kind: str
    place: str
    cooperative: bool = True
    sub_batch: int | None = None
    """Keys of a composite query; None: found by measurement."""
    feed: str | None = None
    """Where changes of a PostgreSQL server come from; None: logical decoding where it is available."""


@dataclass(frozen=True, slots=True)
class MaintainJob:
    """A maintained view and all it needs."""

    view: View
    servers: Mapping[str, ServerSpec]
    sources: Mapping[str, TableLocation]
    store: Path
    strategy: str = AUTO
    until: str = "exhausted"
    interval_seconds: float = 1.0
    """Between two rounds of `until = "forever"`."""
    spark: Mapping[str, str] | None = None
    """Settings of a Spark session; None: none is needed."""
    spark_rows: int = 5_000_000
    """Where there is a session, deltas of more rows are joined by it."""

    @property
    def needs_spark(self) -> bool:
        used = {location.server for location in self.sources.values()}
        return self.spark is not None or any(self.servers[name].kind == SPARK for name in used)
