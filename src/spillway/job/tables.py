"""All tables of a job file with their declarations, for the reference and the schema."""

from dataclasses import dataclass
from typing import Any

from spillway.job.compute import ComputeTable
from spillway.job.keys import DeclaredKey, keys_of
from spillway.job.kinds import ListOf, OneOrList, ValueKind
from spillway.job.maintain import MaintainTable, ServerTable, TableSource
from spillway.job.run import RunConfig
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.job.view import ViewTable


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table: its header, the config that has its keys, and the commands that read it."""

    header: str
    config: type
    commands: tuple[str, ...]

    @property
    def help(self) -> str:
        return (self.config.__doc__ or "").strip()

    @property
    def entries(self) -> tuple["TableEntry", ...]:
        by_name: dict[str, list[DeclaredKey]] = {}
        for key in keys_of(self.config):
            by_name.setdefault(key.name, []).append(key)
        return tuple(TableEntry(name, tuple(keys)) for name, keys in by_name.items())


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A key as users see it; two declarations where it is one value or a list."""

    name: str
    keys: tuple[DeclaredKey, ...]

    @property
    def is_required(self) -> bool:
        return self.keys[0].is_required

    @property
    def help(self) -> str:
        return " ".join(key.help for key in self.keys)

    @property
    def kind(self) -> ValueKind:
        single, *many = (key.kind for key in self.keys)
        return OneOrList(single, many[0]) if many and isinstance(many[0], ListOf) else single

    @property
    def default(self) -> Any:
        """As JSON; None where `unset` says what holds."""
        first = self.keys[0]
        is_plain = not first.is_required and not first.unset
        return first.default if is_plain else None

    @property
    def unset(self) -> str:
        return self.keys[0].unset


TABLES = (
    DeclaredTable("[view]", ViewTable, ("run", "compute", "maintain")),
    DeclaredTable("[sources.NAME]", SourceSpec, ("run", "compute")),
    DeclaredTable("[run]", RunConfig, ("run",)),
    DeclaredTable("[compute]", ComputeTable, ("compute",)),
    DeclaredTable("[sink]", SinkSpec, ("run", "compute")),
    DeclaredTable("[servers.NAME]", ServerTable, ("maintain",)),
    DeclaredTable("[sources.NAME]", TableSource, ("maintain",)),
    DeclaredTable("[maintain]", MaintainTable, ("maintain",)),
)
SPARK_HELP = 'Settings of the Spark session: any that Spark has, such as `"spark.master" = "local[4]"`.'
