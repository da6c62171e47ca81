"""The tables of a maintained view: `[servers.NAME]`, its `[sources.NAME]`, and `[maintain]`.

What they describe is a value of the package `maintain`, which is loaded only when such a job is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from spillway.errors import JobError
from spillway.job.environment import Expanded
from spillway.job.keys import Key
from spillway.job.kinds import FilePath, Flag, OneOf, RealNumber, Text, WholeNumber
from spillway.job.run import EXHAUSTED, UNTIL

if TYPE_CHECKING:
    from spillway.maintain import MaintainJob, ServerSpec
    from spillway.model import View

POSTGRESQL = "postgresql"


def _server_kinds() -> tuple[str, ...]:
    from spillway.maintain import KINDS

    return KINDS


def _feeds() -> tuple[str, ...]:
    from spillway.maintain.sources import FEEDS

    return FEEDS


def _strategies() -> tuple[str, ...]:
    from spillway.maintain import AUTO, RECOMPUTE
    from spillway.maintain.strategies import STRATEGIES

    return (AUTO, *STRATEGIES, RECOMPUTE)


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A database that holds tables of the view. PostgreSQL needs `dsn`, all others `path`."""

    kind: Annotated[str, Key(OneOf(_server_kinds), "What it is.", example='"postgresql"')]
    dsn: Annotated[
        str | None,
        Key(
            Text('string, such as `"host=db dbname=sales"`'),
            "The connection string of a PostgreSQL database. Take the password from the environment: "
            "`password='${DB_PASSWORD}'`.",
            unset="none",
        ),
    ] = None
    path: Annotated[
        str | None,
        Key(
            FilePath(),
            "The file of SQLite or DuckDB, or the directory of Delta or Spark tables.",
            unset="none",
        ),
    ] = None
    cooperative: Annotated[
        bool,
        Key(
            Flag(), "May get temporary tables with the keys of a query. `false`: queries list some keys each."
        ),
    ] = True
    sub_batch: Annotated[
        int | None,
        Key(
            WholeNumber(1, unit="keys"),
            "Keys of one query, for `cooperative = false`.",
            unset="found by measurement",
        ),
    ] = None
    feed: Annotated[
        str | None,
        Key(
            OneOf(_feeds),
            "Where changes of a PostgreSQL server come from.",
            unset='`"logical"` where the server can, else `"triggers"`',
        ),
    ] = None

    def server(self, where: str) -> ServerSpec:
        from spillway.maintain import ServerSpec

        is_postgresql = self.kind == POSTGRESQL
        place = self.dsn if is_postgresql else self.path
        if place is None:
            needed = (
                'dsn; for example dsn = "host=db dbname=sales"'
                if is_postgresql
                else 'path; for example path = "data"'
            )
            raise JobError(f"{where} has no {needed}")
        if self.feed is not None and not is_postgresql:
            raise JobError(f'{where} feed = "{self.feed}" is only for postgresql; remove it')
        if isinstance(self.dsn, Expanded):
            _check_dsn(self.dsn, where)
        return ServerSpec(self.kind, place, self.cooperative, self.sub_batch, self.feed)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table of a server."""

    server: Annotated[str, Key(Text(), "The name of its `[servers.NAME]`.", example='"sales"')]
    table: Annotated[str | None, Key(Text(), "The table there.", unset="the name of the source")] = None


@dataclass(frozen=True, slots=True)
class MaintainTable:
    """How `spillway maintain` keeps the view."""

    store: Annotated[
        str,
        Key(
            FilePath(),
            "The DuckDB file of the view. The first run creates it; a file that holds anything else is "
            "refused.",
            example='"view.duckdb"',
        ),
    ]
    strategy: Annotated[
        str, Key(OneOf(_strategies), "How a round is planned. `auto` decides by learned costs.")
    ] = "auto"
    until: Annotated[
        str,
        Key(OneOf(UNTIL), "`exhausted`: one round. `forever`: round after round, until SIGTERM or SIGINT."),
    ] = EXHAUSTED
    interval_seconds: Annotated[
        float, Key(RealNumber(minimum=0, unit="seconds"), "Time between two rounds of `forever`.")
    ] = 1.0
    spark_rows: Annotated[
        int,
        Key(
            WholeNumber(1, unit="rows"),
            "Where there is a Spark session, it joins and loads more rows than this.",
        ),
    ] = 5_000_000

    def job(
        self,
        view: View,
        servers: Mapping[str, ServerTable],
        sources: Mapping[str, TableSource],
        spark: Mapping[str, str] | None,
    ) -> MaintainJob:
        """The whole job; its tables must fit together."""
        from spillway.maintain import MaintainJob, TableLocation

        specs = {name: table.server(f"[servers.{name}]") for name, table in servers.items()}
        locations = {}
        for name, source in sources.items():
            if source.server not in specs:
                raise JobError(
                    f'[sources.{name}] server = "{source.server}": there is no [servers.{source.server}]; '
                    f"there are {', '.join(specs)}"
                )
            locations[name] = TableLocation(source.server, source.table or name)
        store = Path(self.store)
        for name, spec in specs.items():
            if spec.kind in ("duckdb", "sqlite") and Path(spec.place).resolve() == store.resolve():
                raise JobError(
                    f'[maintain] store = "{store}" is the file of [servers.{name}]; choose another file'
                )
        return MaintainJob(
            view=view,
            servers=specs,
            sources=locations,
            store=store,
            strategy=self.strategy,
            until=self.until,
            interval_seconds=self.interval_seconds,
            spark=spark,
            spark_rows=self.spark_rows,
        )


def _check_dsn(dsn: Expanded, where: str) -> None:
    """Refuse a connection string that libpq cannot read: its own message would quote parts of it."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(dsn)
    except ProgrammingError:
        raise JobError(
            f'{where} dsn = "{dsn.written}" is not a connection string with the values of its variables; '
            "put quotes around them, such as password='${NAME}', and a backslash before ' and \\ in the value"
        ) from None
