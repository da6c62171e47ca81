"""A job file: its tables, and the jobs of `run`, `compute` and `maintain` that are taken from them.

They share `view`, `sources`, `sink` and `spark`. A table is read when a job needs it, completely and before
anything starts: unknown tables and keys, missing parts, wrong values and unset variables are refused, each
with one line that begins with the file. Relative paths are relative to the file.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spillway.errors import JobError
from spillway.job.compute import COMPUTE, ComputeTable, check_sink
from spillway.job.environment import expanded
from spillway.job.keys import ConfigT, parse_table, subtable, suggestion
from spillway.job.kinds import KeyPlace, Settings
from spillway.job.maintain import MaintainTable, ServerTable, TableSource
from spillway.job.run import RUN, RunConfig
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.job.view import ViewTable
from spillway.model import View

if TYPE_CHECKING:
    from spillway.compute import ComputeConfig
    from spillway.maintain import MaintainJob

T = TypeVar("T")
STREAMED = ("view", "sources", "run", "compute", "sink", "spark")
"""The tables of a job for `run` and `compute`."""
MAINTAINED = ("view", "sources", "servers", "maintain", "spark")
_ONLY_MAINTAINED = frozenset({"servers", "maintain"})


@dataclass(frozen=True, slots=True)
class Job:
    """What `spillway run` runs."""

    view: View
    sources: Mapping[str, SourceSpec]
    run: RunConfig
    sink: SinkSpec
    spark: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ComputeJob:
    """What `spillway compute` computes."""

    view: View
    sources: Mapping[str, SourceSpec]
    compute: "ComputeConfig"
    sink: SinkSpec
    spark: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """The tables of a job file, as they are written."""

    tables: Mapping[str, Any]
    base: Path
    """The directory of relative paths."""
    file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that this file is for."""
        if _ONLY_MAINTAINED & set(self.tables):
            return ("maintain",)
        named = tuple(name for name in ("run", "compute") if name in self.tables)
        return named or ("compute",)

    def run_job(self) -> Job:
        return self._taken(self._run_job)

    def compute_job(self) -> ComputeJob:
        return self._taken(self._compute_job)

    def maintain_job(self) -> "MaintainJob":
        return self._taken(self._maintain_job)

    def check(self) -> None:
        """Refuse the file if one of its commands would."""
        takes = {"run": self.run_job, "compute": self.compute_job, "maintain": self.maintain_job}
        for command in self.commands:
            takes[command]()

    def _run_job(self) -> Job:
        self._refuse_maintained()
        return Job(
            view=self._view(streams=True),
            sources=self._named(SourceSpec, "sources", named=True),
            run=self._table(RunConfig, RUN),
            sink=self._table(SinkSpec, "[sink]", required=False),
            spark=self._spark(),
        )

    def _compute_job(self) -> ComputeJob:
        self._refuse_maintained()
        sink = self._table(SinkSpec, "[sink]", required=False)
        check_sink(sink)
        return ComputeJob(
            view=self._view(streams=False),
            sources=self._named(SourceSpec, "sources", named=True),
            compute=self._table(ComputeTable, COMPUTE, required=False).config(),
            sink=sink,
            spark=self._spark(),
        )

    def _maintain_job(self) -> "MaintainJob":
        if not _ONLY_MAINTAINED & set(self.tables):
            raise JobError(
                "there is no [servers] and no [maintain] table, so spillway maintain cannot run this job; "
                "use spillway run or spillway compute"
            )
        self._refuse_unknown(MAINTAINED)
        servers = self._named(ServerTable, "servers")
        sources = self._named(TableSource, "sources")
        table = self._table(MaintainTable, "[maintain]")
        spark = self._spark() if "spark" in self.tables else None
        return table.job(self._view(streams=False), servers, sources, spark)

    def _taken(self, take: Callable[[], T]) -> T:
        try:
            return take()
        except JobError as error:
            if self.file is None:
                raise
            raise JobError(f"job file {self.file}: {error}") from None

    def _refuse_maintained(self) -> None:
        if _ONLY_MAINTAINED & set(self.tables):
            raise JobError(
                "this is the job of a maintained view; use spillway maintain (--explain shows its plan)"
            )
        self._refuse_unknown(STREAMED)

    def _refuse_unknown(self, known: tuple[str, ...]) -> None:
        for name, body in self.tables.items():
            if name not in known:
                what = f"table [{name}]" if isinstance(body, Mapping) else f"key {name}"
                raise JobError(f"unknown {what} in the job file; {suggestion(name, known, 'tables')}")

    def _view(self, *, streams: bool) -> View:
        return self._table(ViewTable, "[view]").view(streams=streams)

    def _table(self, config: type[ConfigT], name: str, *, required: bool = True) -> ConfigT:
        table = subtable(self.tables, name[1:-1], required=required)
        return parse_table(config, table, name, self.base, self.environment)

    def _named(self, config: type[ConfigT], name: str, *, named: bool = False) -> dict[str, ConfigT]:
        """The tables `[name.NAME]`; with `named` each is told its name."""
        tables = subtable(self.tables, name)
        found = {}
        for key in tables:
            body = subtable(tables, key, inside=f"[{name}]")
            given = {"name": key} if named else {}
            found[key] = parse_table(config, body, f"[{name}.{key}]", self.base, self.environment, **given)
        return found

    def _spark(self) -> dict[str, str]:
        table = expanded(subtable(self.tables, "spark", required=False), "[spark]", self.environment)
        return Settings().parse(table, KeyPlace("[spark]", ""))


def read_document(path: str | Path) -> Document:
    """The tables of a job file; what is not TOML is refused."""
    file = Path(path)
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(f"job file {file} cannot be read: {error.strerror}; check its path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"job file {file} is not valid TOML: {error}") from None
    return Document(tables, file.resolve().parent, file)


def read_job(path: str | Path) -> Job:
    return read_document(path).run_job()


def read_compute_job(path: str | Path) -> ComputeJob:
    return read_document(path).compute_job()


def read_maintain_job(path: str | Path) -> "MaintainJob":
    return read_document(path).maintain_job()


def is_compute_job(path: str | Path) -> bool:
    """Whether a job file is for `spillway compute` only."""
    tables = read_document(path).tables
    return "compute" in tables and "run" not in tables
