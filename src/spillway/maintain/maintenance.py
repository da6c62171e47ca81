"""A job's maintenance, opened: its servers, its view defined over their tables, its store and its manager.

Everything that is opened here is closed at the end of its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from spillway.errors import JobError
from spillway.maintain.algebra import Algebra
from spillway.maintain.calibration import learned_costs
from spillway.maintain.choice import PlanChooser, choose_by_name
from spillway.maintain.definition import ViewDefinition, define_view
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.settings import SPARK, MaintainJob, ServerSpec, TableLocation
from spillway.maintain.sources import DeltaServer, DuckDbServer, Server, SqliteServer
from spillway.maintain.view_manager import Load, ViewManager
from spillway.maintain.view_store import ViewStore

OpenTables = Callable[[ServerSpec], Server]
"""Opens the tables of a Spark session, of which this layer knows nothing."""


@dataclass(frozen=True, slots=True)
class Backend:
    """What a Spark session does for a maintenance; by default all happens in this process."""

    open_tables: OpenTables | None = None
    algebra: Algebra | None = None
    load: Load | None = None


LOCAL = Backend()


@dataclass(frozen=True, slots=True)
class Sources:
    """The servers of a job, and its view as defined over their tables."""

    servers: Mapping[str, Server]
    definition: ViewDefinition
    locations: tuple[TableLocation, ...]
    """Of the inputs of the view, in their order."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A stored view and the manager that keeps it up to date."""

    definition: ViewDefinition
    servers: Mapping[str, Server]
    store: ViewStore
    manager: ViewManager


@contextmanager
def open_sources(job: MaintainJob, backend: Backend = LOCAL) -> Iterator[Sources]:
    """The servers that the sources of a job use; nothing is changed."""
    used = {location.server for location in job.sources.values()}
    servers: dict[str, Server] = {}
    with ExitStack() as stack:
        for name, spec in job.servers.items():
            if name in used:
                servers[name] = stack.enter_context(closing(open_server(spec, name, backend.open_tables)))
        catalog = {
            name: servers[location.server].columns(location.table) for name, location in job.sources.items()
        }
        definition = define_view(job.view, catalog)
        yield Sources(
            servers, definition, tuple(job.sources[view_input.source] for view_input in definition.inputs)
        )


@contextmanager
def open_view(
    job: MaintainJob,
    sources: Sources,
    backend: Backend = LOCAL,
    *,
    replace: bool = False,
    chooser: PlanChooser | None = None,
) -> Iterator[Maintenance]:
    """The stored view of a job; `replace` takes over a store that holds something else.

    Plans are those of `chooser`, or else of the job's strategy. What the choice has learned is saved at the
    end, unless that is an error.
    """
    definition = sources.definition
    names = [item.name for item in definition.outputs]
    with ExitStack() as stack:
        store = ViewStore.open(
            job.store, definition.fingerprint, names, definition.aggregation, reload=replace
        )
        stack.callback(store.close)
        chooser = chooser or choose_by_name(job.strategy)
        manager = ViewManager(
            definition,
            sources.locations,
            sources.servers,
            store,
            chooser,
            algebra=backend.algebra,
            load=backend.load,
        )
        stack.callback(manager.close)
        yield Maintenance(definition, sources.servers, store, manager)
        chooser.save(store)


@contextmanager
def open_maintenance(
    job: MaintainJob,
    backend: Backend = LOCAL,
    *,
    replace: bool = False,
    chooser: PlanChooser | None = None,
) -> Iterator[Maintenance]:
    """Servers and stored view together."""
    with (
        open_sources(job, backend) as sources,
        open_view(job, sources, backend, replace=replace, chooser=chooser) as maintenance,
    ):
        yield maintenance


def current_costs(job: MaintainJob, sources: Sources, backend: Backend = LOCAL) -> QueryCost | None:
    """What the queries of a stored view cost; None if the view has not been loaded."""
    if not ViewStore.holds(job.store, sources.definition.fingerprint):
        return None
    with open_view(job, sources, backend) as maintenance:
        return learned_costs(maintenance.definition, maintenance.store, maintenance.manager)


def open_server(spec: ServerSpec, name: str = "", open_tables: OpenTables | None = None) -> Server:
    """The server of a specification; `name` is its name in the job."""
    if spec.kind == "postgresql":
        from spillway.maintain.sources.postgres import PostgresServer

        return PostgresServer(
            spec.place,
            cooperative=spec.cooperative,
            sub_batch=spec.sub_batch,
            feed=spec.feed,
            name=name,
        )
    if spec.kind == "sqlite":
        return SqliteServer(spec.place, cooperative=spec.cooperative, sub_batch=spec.sub_batch)
    if spec.kind == "duckdb":
        return DuckDbServer(spec.place, cooperative=spec.cooperative, sub_batch=spec.sub_batch)
    if spec.kind == "delta":
        return DeltaServer(spec.place)
    if spec.kind != SPARK:
        raise JobError(f"unknown kind of server: {spec.kind}")
    if open_tables is None:
        raise JobError('kind = "spark" needs a Spark session; run the job by `spillway maintain`')
    return open_tables(spec)
