"""A job's maintenance: its servers opened, its view defined over their tables, its store and its manager."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType

from spillway.errors import JobError
from spillway.maintain.algebra import Algebra
from spillway.maintain.calibration import calibrate
from spillway.maintain.choice import CostChoice, choose_by_name
from spillway.maintain.definition import ViewDefinition, define_view
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.settings import AUTO, SPARK, MaintainJob, ServerSpec
from spillway.maintain.sources import DeltaServer, DuckDbServer, Server, SqliteServer
from spillway.maintain.view_manager import Choose, Load, RoundReport, ViewManager
from spillway.maintain.view_store import ViewStore

OpenTables = Callable[[ServerSpec], Server]
"""Opens the tables of a Spark session, which this layer knows nothing of."""


class Maintenance:
    """Use as a context manager; everything it opened is closed at its end."""

    def __init__(
        self,
        job: MaintainJob,
        open_tables: OpenTables | None = None,
        algebra: Algebra | None = None,
        load: Load | None = None,
        *,
        how: str = "maintain",
    ) -> None:
        """`how`: "maintain"; "replace" a stored view, whatever it is; or "plan", which changes nothing."""
        self._job, self._how = job, how
        self.loaded = True
        self._open_tables = open_tables
        self._choice: CostChoice | None = None
        self._algebra, self._load = algebra, load
        self._stack = ExitStack()
        self.servers: dict[str, Server] = {}
        self.definition: ViewDefinition
        self.manager: ViewManager
        self.store: ViewStore

    def __enter__(self) -> Maintenance:
        with ExitStack() as stack:
            used = {location.server for location in self._job.sources.values()}
            for name, spec in self._job.servers.items():
                if name in used:
                    self.servers[name] = self._open(name, spec)
                    stack.callback(self.servers[name].close)
            catalog = {
                name: self.servers[location.server].columns(location.table)
                for name, location in self._job.sources.items()
            }
            self.definition = define_view(self._job.view, catalog)
            if self._how == "plan" and not ViewStore.holds(self._job.store, self.definition.fingerprint):
                self.loaded = False
                self._stack = stack.pop_all()
                return self
            names = [item.name for item in self.definition.outputs]
            self.store = ViewStore(
                self._job.store,
                self.definition.fingerprint,
                names,
                self.definition.aggregation,
                reload=self._how == "replace",
            )
            stack.callback(self.store.close)
            locations = [self._job.sources[one.source] for one in self.definition.inputs]
            self.manager = ViewManager(
                self.definition,
                locations,
                self.servers,
                self.store,
                choose_by_name("batch", self.definition.graph),
                algebra=self._algebra,
                load=self._load,
            )
            stack.callback(self.manager.close)
            self._stack = stack.pop_all()
        return self

    def start(self, *, reload: bool = False) -> None:
        """Load the view if it must be, and learn what queries cost if that is needed."""
        if reload:
            self.manager.reload()
        self.manager.open()
        graph = self.definition.graph
        if self._job.strategy != AUTO:
            self.manager.choose = choose_by_name(self._job.strategy, graph)
            return
        self.manager.choose = self.by_cost()

    def by_cost(self) -> Choose:
        """The choice by estimated cost, which learns from every round."""
        if self._choice is None:
            self._choice = CostChoice(self.cost_model(), self.definition.graph)
        return self._choice

    def round(self) -> RoundReport | None:
        """A round of the manager; where costs decide, they learn from it."""
        report = self.manager.round()
        if report is not None and self._choice is not None:
            self._choice.observe(report)
        return report

    def cost_model(self) -> QueryCost:
        """The learned costs: of this run, from the store, or from sample queries."""
        if self._choice is not None:
            return self._choice.model
        stored = self.store.note("cost model")
        if stored is not None:
            return QueryCost.of_document(json.loads(stored))
        model = calibrate(self.definition, self.manager)
        self.store.save_note("cost model", json.dumps(model.document()))
        return model

    def _open(self, name: str, spec: ServerSpec) -> Server:
        if spec.kind != SPARK:
            return open_server(spec, name)
        if self._open_tables is None:
            raise JobError('kind = "spark" needs a Spark session; run the job by `spillway maintain`')
        return self._open_tables(spec)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._choice is not None and kind is None:
            self.store.save_note("cost model", json.dumps(self._choice.model.document()))
        self._stack.close()


def open_server(spec: ServerSpec, name: str = "") -> Server:
    """The server of a specification, as the job calls it."""
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
    raise JobError(f"unknown kind of server: {spec.kind}")
