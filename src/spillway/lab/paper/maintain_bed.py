"""A test bed of the maintenance figures: relations on real PostgreSQL servers, a view over them, its manager.

Row g of every relation has the same value in the columns of an edge, so rows with the same number join, also
in cycles, and the view has as many rows as a relation. With a join ratio f every value occurs f times.

A `Laboratory` has the servers for the beds of one figure, and says how much is run.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from spillway.maintain import (
    Answer,
    FixedChoice,
    KeySet,
    MaintenancePlan,
    QueryCost,
    RoundReport,
    TableLocation,
    ViewManager,
    ViewStore,
    calibrate,
    define_view,
)
from spillway.maintain.sources import SourceTable
from spillway.maintain.sources.postgres import PostgresServer
from spillway.maintain.strategies import plan_round
from spillway.model import View

_PRIMES = (7_919, 104_729, 1_299_709, 15_485_863, 86_028_121, 982_451_653)


@dataclass(frozen=True, slots=True)
class BedShape:
    """Relations, the joined pairs, and their join ratios and indexes."""

    relations: int
    edges: tuple[tuple[int, int], ...]
    rows: int
    ratios: tuple[float, ...] = ()
    """The join ratio of each edge; none: 1."""
    indexes: tuple[tuple[int, int], ...] = ()
    """Relation and edge."""
    payloads: int = 1

    def ratio(self, edge: int) -> float:
        return self.ratios[edge] if self.ratios else 1.0

    def values(self, edge: int) -> int:
        return max(1, int(self.rows / self.ratio(edge)))

    def edges_of(self, relation: int) -> list[int]:
        return [number for number, ends in enumerate(self.edges) if relation in ends]


def chain(relations: int) -> tuple[tuple[int, int], ...]:
    return tuple((node, node + 1) for node in range(relations - 1))


class Bed:
    """Use `open_bed`."""

    def __init__(
        self,
        shape: BedShape,
        scratch: Path,
        dsns: Sequence[str],
        **options: Any,
    ) -> None:
        self.shape = shape
        self._chance = random.Random(0)  # noqa: S311 - data of an experiment
        self._homes = [TableLocation(f"s{node % len(dsns)}", f"r{node}") for node in range(shape.relations)]
        self._dsns = {f"s{number}": dsn for number, dsn in enumerate(dsns)}
        for node in range(shape.relations):
            self._create(node)
        self._servers = {name: PostgresServer(dsn, **options) for name, dsn in self._dsns.items()}
        names = [f"r{n}.{c} AS {c}_{n}" for n in range(shape.relations) for c in self._columns(n)]
        tables = ", ".join(home.table for home in self._homes)
        on = " AND ".join(f"r{a}.e{number} = r{b}.e{number}" for number, (a, b) in enumerate(shape.edges))
        catalog = {home.table: self._servers[home.server].columns(home.table) for home in self._homes}
        view = View.sql(f"SELECT {', '.join(names)} FROM {tables} WHERE {on}")
        self.definition = define_view(view, catalog)
        outputs = [item.name for item in self.definition.outputs]
        self._store = ViewStore.open(scratch / "view.duckdb", self.definition.fingerprint, outputs)
        self._plan: Callable[[Sequence[int]], MaintenancePlan | None] = lambda _: None
        chooser = FixedChoice(lambda _, sizes: self._plan(sizes))
        self.manager = ViewManager(self.definition, self._homes, self._servers, self._store, chooser)
        self.manager.open()

    def close(self) -> None:
        self.manager.close()
        self._store.close()
        for server in self._servers.values():
            server.close()
        for node, home in enumerate(self._homes):
            with psycopg.connect(self._dsns[home.server], autocommit=True) as connection:
                connection.execute(f"DROP TABLE r{node} CASCADE")
                connection.execute("DROP SCHEMA IF EXISTS spillway CASCADE")

    def model(self) -> QueryCost:
        """Cost functions from sample queries of now."""
        return calibrate(self.definition, self.manager)

    def write(self, sizes: Sequence[int]) -> None:
        """Updates of each relation: half inserts, half deletes of existing rows."""
        for node, size in enumerate(sizes):
            if not size:
                continue
            shape, half = self.shape, size // 2
            picked = [self._chance.randrange(shape.rows) for _ in range(size)]
            fresh = shape.rows + self._chance.randrange(10**9)
            with psycopg.connect(self._dsns[self._homes[node].server]) as connection:
                connection.execute(
                    f"INSERT INTO r{node} SELECT {fresh} + n, {self._values(node)} "
                    "FROM unnest(%s::bigint[]) WITH ORDINALITY u(g, n)",
                    [picked[half:]],
                )
                connection.execute(f"DELETE FROM r{node} WHERE id = ANY(%s::bigint[])", [picked[:half]])

    def seconds(
        self,
        sizes: Sequence[int],
        choose: Callable[[Sequence[int]], MaintenancePlan],
        *,
        repeats: int = 1,
        measure: Callable[[RoundReport], float] = lambda report: report.maintain_seconds,
    ) -> float:
        """The median time of rounds with that many updates each, by the chosen plan."""
        found = []
        for _ in range(repeats):
            self.write(sizes)
            self._plan = choose
            report = self.manager.round()
            assert report is not None
            found.append(measure(report))
        return statistics.median(found)

    def column_names(self, node: int) -> list[str]:
        """The columns that the view reads of a relation."""
        return [column.name for column in self.definition.inputs[node].columns]

    def ask(self, node: int, places: Sequence[int], keys: pa.Table) -> Answer:
        """Query a relation by keys of the first of `places`; the answer has these columns only."""
        home, columns = self._homes[node], self.definition.inputs[node].columns
        relation = SourceTable(home.table, tuple(columns[place] for place in places))
        vector = self.manager.open().vectors[home.server]
        return self._servers[home.server].ask(relation, [KeySet((0,), keys)], vector)

    def _columns(self, node: int) -> list[str]:
        edges = [f"e{number}" for number in self.shape.edges_of(node)]
        return ["id", *edges, *(f"p{number}" for number in range(self.shape.payloads))]

    def _values(self, node: int) -> str:
        """SQL of the values of row `g`."""
        edges = [
            f"mod(g * {_PRIMES[number % len(_PRIMES)]}, {self.shape.values(number)})"
            for number in self.shape.edges_of(node)
        ]
        return ", ".join([*edges, *(f"md5((g + {n})::text)" for n in range(self.shape.payloads))])

    def _create(self, node: int) -> None:
        with psycopg.connect(self._dsns[self._homes[node].server], autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            columns = [f"{c} {'text' if c.startswith('p') else 'bigint'}" for c in self._columns(node)]
            connection.execute(f"CREATE TABLE r{node} ({', '.join(columns)})")
            connection.execute(
                f"INSERT INTO r{node} SELECT g, {self._values(node)} "
                f"FROM generate_series(0::bigint, {self.shape.rows} - 1) g"
            )
            indexed = [f"e{edge}" for relation, edge in self.shape.indexes if relation == node]
            for column in ("id", *indexed):
                connection.execute(f"CREATE INDEX ON r{node} ({column})")
            connection.execute(f"VACUUM ANALYZE r{node}")


@contextmanager
def open_bed(shape: BedShape, scratch: Path, dsns: Sequence[str], **options: Any) -> Iterator[Bed]:
    """A bed with a loaded view, over servers with these options; its tables are dropped at the end."""
    scratch.mkdir(parents=True)
    bed = Bed(shape, scratch, dsns, **options)
    try:
        yield bed
    finally:
        bed.close()


Lines = dict[str, dict[str, float]]
"""The lines of a figure by label; each has values by position on the horizontal axis."""


@dataclass(slots=True)
class Laboratory:
    """Servers for the beds of one figure, and how much is run."""

    dsns: Sequence[str]
    scratch: Path
    rows: int
    repeats: int
    quick: bool
    note: Callable[[str], None]
    numbers: Iterator[int]

    @contextmanager
    def bed(self, shape: BedShape, **options: Any) -> Iterator[Bed]:
        self.note(f"creating {shape.relations} relations of {shape.rows:,} rows")
        with open_bed(shape, self.scratch / f"bed{next(self.numbers)}", self.dsns, **options) as bed:
            yield bed

    def some(self, values: Sequence[int]) -> Sequence[int]:
        """All positions on the horizontal axis, or a few of them."""
        return values[:: max(1, len(values) // 2)][:3] if self.quick else values


def by_name(strategy: str, bed: Bed) -> Callable[[Sequence[int]], MaintenancePlan]:
    return lambda sizes: plan_round(strategy, bed.definition.graph, sizes)


def evenly(updates: int, sources: int) -> list[int]:
    return [updates // sources] * sources
