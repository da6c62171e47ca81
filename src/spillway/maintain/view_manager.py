"""The view manager: keeps a stored view equal to its definition while its sources change.

A round cuts every server (its update vector: whole transactions), plans, asks the sources, announces the new
vectors to them, and commits the view's delta with the vectors. Until that commit nothing has happened: a
kill, a lost server or an error leaves the stored view and its vectors as they were, and the next round begins
there. A source that is no longer the one that the view was loaded from ends the round (`sources/server.py`).
After round k the view is exactly the join of the sources at the vectors of round k. Changes that come
in the meantime belong to the next round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import SpillwayError
from spillway.maintain.algebra import Algebra, canonical_rows
from spillway.maintain.calibration import learned_costs
from spillway.maintain.choice import PlanChooser
from spillway.maintain.definition import ViewDefinition
from spillway.maintain.delta import WEIGHT
from spillway.maintain.execute import Answer, ExecutionMetrics, Executor
from spillway.maintain.plan import RECOMPUTE
from spillway.maintain.recompute import compare, recompute
from spillway.maintain.round_report import RoundReport
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources import Cut, Server, SourceTable, restored
from spillway.maintain.unify import KeySet
from spillway.maintain.view_store import StoredState, ViewStore

SAMPLE_ROWS = 5_000
"""Rows of each input that are kept as keys of sample queries."""
Load = Callable[[ViewDefinition, Sequence[pa.Table]], pa.Table | None]
"""Signed rows of all inputs, in wide columns, to the rows of the view; None: joined in this process."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a complete load showed: sample rows of each input, its size, and the time it took."""

    samples: list[pa.Table]
    cardinalities: tuple[int, ...]
    seconds: float


class ViewManager:
    """Maintains one view; `locations` are those of its inputs, in order."""

    def __init__(
        self,
        definition: ViewDefinition,
        locations: Sequence[TableLocation],
        servers: Mapping[str, Server],
        store: ViewStore,
        chooser: PlanChooser,
        clock: Callable[[], float] = time.monotonic,
        algebra: Algebra | None = None,
        load: Load | None = None,
    ) -> None:
        self._definition = definition
        self._locations = tuple(locations)
        self._servers = servers
        self._store = store
        self._chooser = chooser
        self._clock = clock
        self._load = load
        self._executor = Executor(definition, algebra)
        self._pool = ThreadPoolExecutor(max(1, len(servers)), "spillway-maintain")
        self._loaded: Loaded | None = None
        self._opened = False
        self._relations = tuple(
            SourceTable(location.table, view_input.columns)
            for location, view_input in zip(locations, definition.inputs, strict=True)
        )

    def open(self) -> StoredState:
        """Record changes at all servers and load the view, unless that has happened before."""
        state = self._store.state()
        if state is None:
            self.reload()
            state = self._store.state()
            assert state is not None
        elif not self._opened:
            for name, nodes in self._by_server().items():
                if name not in state.vectors:
                    raise restored(f"server {name} of the job")
                self._servers[name].resume(self._tables(nodes), self._reader(name))
            self._opened = True
        return state

    def start(self) -> StoredState:
        """Make all ready for a round: the view is loaded, and what queries cost is known if plans need it."""
        state = self.open()
        self._chooser.prepare(partial(learned_costs, self._definition, self._store, self))
        return state

    def reload(self) -> None:
        """Load the view again, whatever is stored; the old result can be read until the new one is committed.

        If that fails, the sources stop recording changes: nobody would read them.
        """
        state = self._store.state()
        self._release()
        try:
            for name, nodes in self._by_server().items():
                self._servers[name].install(self._tables(nodes), self._reader(name), self._store.place)
            self._replace(0 if state is None else state.round + 1, {})
        except SpillwayError:
            with suppress(SpillwayError):  # what failed first is what matters; the next load releases it too
                self._release()
            raise
        self._opened = True

    def forget(self) -> list[str]:
        """Tell all servers to keep no more changes for this view; the next `open` loads it again.

        Returns the other stores for which some of the servers still keep changes.
        """
        self._store.forget()
        self._opened = False
        return self._release()

    def _release(self) -> list[str]:
        reader, store = self._store.reader, self._store.place
        others = [
            self._servers[name].forget(self._tables(nodes), reader, store)
            for name, nodes in self._by_server().items()
        ]
        return sorted({other for found in others for other in found})

    def round(self) -> RoundReport | None:
        """Bring the view to the sources' present state; None when nothing has changed."""
        self._store.check_in_place()
        state = self.start()
        started = self._clock()
        cuts = {
            name: self._servers[name].changes([self._relations[node] for node in nodes], state.vectors[name])
            for name, nodes in self._by_server().items()
        }
        raw = self._deltas(cuts)
        if not any(delta.num_rows for delta in raw):
            return None
        deltas = [self._executor.filtered(node, delta) for node, delta in enumerate(raw)]
        cut_at = self._clock()
        vectors = {name: cut.vector for name, cut in cuts.items()}
        plan = self._chooser.plan(self._definition.graph, [delta.num_rows for delta in deltas])
        updates = sum(delta.num_rows for delta in raw)
        report = RoundReport(state.round + 1, RECOMPUTE, updates, cut_seconds=cut_at - started)
        report.net_rows = [pc.sum(delta.column(WEIGHT)).as_py() or 0 for delta in raw]
        if plan is None:
            report.delta_rows = self._replace(state.round + 1, state.vectors)
            report.maintain_seconds = self._clock() - cut_at
        else:
            report.strategy = plan.strategy
            metrics = ExecutionMetrics()
            delta = self._executor.run(plan, deltas, self._ask(vectors, report), metrics)
            done = self._clock()
            moved = self._announce(state.vectors, vectors)
            self._store.apply(delta, vectors, state.round + 1)
            self._confirm(moved, vectors)
            report.delta_rows, report.queries = delta.num_rows, metrics.queries
            report.skipped_queries, report.keys_sent = metrics.skipped, metrics.keys_sent
            report.rows_received, report.joined_rows = metrics.rows_received, metrics.joined_rows
            report.maintain_seconds, report.apply_seconds = done - cut_at, self._clock() - done
        report.lag_seconds = self._clock() - started
        ages = [cut.age_seconds for cut in cuts.values() if cut.age_seconds is not None]
        report.freshness_seconds = max(ages) + report.lag_seconds if ages else None
        self._chooser.observe(report)
        return report

    def verify(self) -> int:
        """How many rows of the stored view differ from recomputation at its vectors; 0 when it is right."""
        state = self.open()
        rows, _ = self._joined(state.vectors)
        return compare(self._store.rows(), rows) + self._store.wrong_groups()

    def waiting_changes(self) -> dict[str, int]:
        """How many changes of each source came after the vectors of the stored view."""
        state = self.open()
        cuts = {
            name: self._servers[name].changes([self._relations[node] for node in nodes], state.vectors[name])
            for name, nodes in self._by_server().items()
        }
        deltas = zip(self._definition.inputs, self._deltas(cuts), strict=True)
        return {view_input.source: delta.num_rows for view_input, delta in deltas}

    def samples(self) -> list[pa.Table]:
        """Some rows of every input, spread over it, in wide columns."""
        return self._known_load().samples

    def cardinalities(self) -> tuple[int, ...]:
        """Rows of every input."""
        return self._known_load().cardinalities

    def recompute_seconds(self) -> float:
        """How long it takes to load all sources and to join them."""
        return self._known_load().seconds

    def timed_query(self, node: int, keys: KeySet) -> tuple[int, float]:
        """A sample query: rows received, and seconds."""
        location, state = self._locations[node], self.open()
        began = self._clock()
        answer = self._servers[location.server].ask(
            self._relations[node], [keys], state.vectors[location.server]
        )
        return answer.rows[0].num_rows, self._clock() - began

    def close(self) -> None:
        self._pool.shutdown()
        self._executor.close()

    def _known_load(self) -> Loaded:
        if self._loaded is None:
            self._joined(None)
        assert self._loaded is not None
        return self._loaded

    def _replace(self, number: int, before: Mapping[str, str]) -> int:
        rows, vectors = self._joined(None, self._load)
        moved = self._announce(before, vectors)
        size = self._store.replace(rows, vectors, number)
        self._confirm(moved, vectors)
        return size

    def _joined(
        self, at: Mapping[str, str] | None, load: Load | None = None
    ) -> tuple[pa.Table, dict[str, str]]:
        """The rows of the view over complete sources, and the vectors of these sources."""
        began = self._clock()
        cuts = {
            name: self._servers[name].load(
                [self._relations[node] for node in nodes], None if at is None else at[name]
            )
            for name, nodes in self._by_server().items()
        }
        tables = self._deltas(cuts)
        rows = None
        if load is not None:
            kept = [self._executor.kept(node, table) for node, table in enumerate(tables)]
            rows = load(self._definition, kept)
        if rows is None:
            rows = recompute(self._definition, self._executor, tables)
        samples = [
            self._executor.filtered(node, table.take(_spread(table.num_rows)))
            for node, table in enumerate(tables)
        ]
        self._loaded = Loaded(samples, tuple(t.num_rows for t in tables), self._clock() - began)
        return rows, {name: cut.vector for name, cut in cuts.items()}

    def _ask(
        self, vectors: Mapping[str, str], report: RoundReport
    ) -> Callable[[int, Sequence[KeySet]], Answer]:
        def ask(node: int, key_sets: Sequence[KeySet]) -> Answer:
            location = self._locations[node]
            began = self._clock()
            answer = self._servers[location.server].ask(
                self._relations[node], key_sets, vectors[location.server]
            )
            seconds = self._clock() - began
            report.query_seconds += seconds
            keys = sum(key_set.keys.num_rows for key_set in key_sets)
            report.costs.append((node, keys, max(len(key_set.columns) for key_set in key_sets), seconds))
            return Answer(tuple(map(canonical_rows, answer.rows)), canonical_rows(answer.later))

        return ask

    def _announce(self, before: Mapping[str, str], vectors: Mapping[str, str]) -> list[str]:
        """Tell every server whose vector moves; these servers."""
        moved = [name for name in vectors if before.get(name) != vectors[name]]
        servers = self._by_server()
        self._tell(
            moved,
            lambda name: self._servers[name].announce(
                self._tables(servers[name]), self._reader(name), before.get(name), vectors[name]
            ),
        )
        return moved

    def _confirm(self, moved: Sequence[str], vectors: Mapping[str, str]) -> None:
        servers = self._by_server()
        self._tell(
            moved,
            lambda name: self._servers[name].confirm(
                self._tables(servers[name]), self._reader(name), vectors[name]
            ),
        )

    def _tell(self, names: Sequence[str], tell: Callable[[str], None]) -> None:
        """Tell some servers; remote ones in parallel.

        Nothing comes back: threads that read rows would wait for each other's turn in the interpreter.
        """
        remote = [name for name in names if getattr(self._servers[name], "remote", False)]
        waiting = [self._pool.submit(tell, name) for name in remote]
        try:
            for name in names:
                if name not in remote:
                    tell(name)
        finally:
            wait(waiting)  # whatever happened: nobody else may be using a server when this returns
        for future in waiting:
            future.result()

    def _deltas(self, cuts: Mapping[str, Cut]) -> list[pa.Table]:
        """The deltas of all inputs, in their order."""
        deltas: dict[int, pa.Table] = {}
        for name, nodes in self._by_server().items():
            deltas.update(zip(nodes, map(canonical_rows, cuts[name].deltas), strict=True))
        return [deltas[node] for node in range(len(self._locations))]

    def _reader(self, server: str) -> str:
        """The name under which a server keeps changes: two servers of a job may be the same database."""
        return f"{self._store.reader}/{server}"

    def _tables(self, nodes: Sequence[int]) -> list[str]:
        return sorted({self._locations[node].table for node in nodes})

    def _by_server(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for node, location in enumerate(self._locations):
            found.setdefault(location.server, []).append(node)
        return found


def _spread(rows: int) -> pa.Array:
    """Places of a few thousand rows, evenly over all, in an order that is not theirs."""
    places = np.unique(np.linspace(0, max(0, rows - 1), min(rows, SAMPLE_ROWS)).astype(np.int64))
    return pa.array(np.random.default_rng(0).permutation(places))
