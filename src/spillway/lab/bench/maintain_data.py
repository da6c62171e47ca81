"""Relations of the benchmark `maintain` on real PostgreSQL servers, and the updates that hit them (10.5.1).

A chain r0.b = r1.a, r1.b = r2.a, ... Every value of a join column occurs `ratio` times, so an update changes
about ratio^(n-1) rows of the view. To keep the view small, only the first `joining` rows of a relation join
at all; updates hit these rows. Rows have about 64 bytes. Join columns have an index if wanted: without one a
query scans the relation, and with one its cost follows the keys it carries. Half of the updates insert values
in range, half delete existing rows.
"""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg

from spillway.errors import JobError

PRIMES = (7_919, 104_729, 1_299_709, 15_485_863)
_SHARED_BUFFERS = "512MB"
_RESTART_SECONDS = 30.0
NOWHERE = 1 << 40
"""Values of `b` from here on match no `a`."""


@contextmanager
def postgres_servers(root: Path, count: int) -> Iterator[list[str]]:
    """Starts `count` servers for the duration of the context and gives their DSNs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pgserver
    except ImportError:
        raise JobError("bench maintain needs servers: pip install pgserver (Python 3.12 at most)") from None
    servers: list[Any] = []
    try:
        for number in range(count):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                servers.append(cast("Any", pgserver).get_server(root / f"pg{number}", cleanup_mode="stop"))
            restart_with(servers[-1], shared_buffers=_SHARED_BUFFERS)  # large enough for its relations
        yield [str(server.get_uri()) for server in servers]
    finally:
        for server in servers:
            server.cleanup()


def restart_with(server: Any, **settings: str) -> None:
    """Restart an embedded server with the settings of an installed one."""
    pid = server.get_pid()
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for name, value in settings.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + _RESTART_SECONDS
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.ensure_postgres_running()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def joining_rows(rows: int, ratio: float, relations: int) -> int:
    """The number of joining rows per relation for which the view has about as many rows as a relation."""
    return max(1, min(rows, int(rows / ratio ** (relations - 1))))


def create_relation(
    dsn: str, table: str, *, rows: int, joining: int, ratio: float, seed: int, indexed: bool
) -> None:
    """A relation of `rows` rows; of the first `joining` every join value occurs about `ratio` times."""
    values = max(1, int(joining / ratio))
    prime = PRIMES[seed % len(PRIMES)]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(f"CREATE TABLE {table} (id bigint, a bigint, b bigint, payload text)")
        connection.execute(
            f"INSERT INTO {table} SELECT g, CASE WHEN g < {joining} THEN g % {values} ELSE -1 - g END, "
            f"CASE WHEN g < {joining} THEN (g * {prime} + {seed}) % {values} ELSE {NOWHERE} + g END, "
            f"md5(g::text) FROM generate_series(0::bigint, {rows} - 1) g"
        )
        for column in ("id", "a", "b") if indexed else ("id",):
            connection.execute(f"CREATE INDEX ON {table} ({column})")
        connection.execute(f"VACUUM ANALYZE {table}")


class JoiningRows:
    """The ids of the joining rows; inserts and deletes are equal in number, so the view keeps its size."""

    def __init__(self, joining: int, seed: int) -> None:
        self._ids = np.arange(joining)
        self._chance = np.random.default_rng(seed)
        self._next = 1 << 41

    def exchange(self, count: int) -> tuple[list[int], list[int]]:
        """The ids of new rows, and of as many existing rows to delete."""
        count = min(count, len(self._ids))
        places = self._chance.choice(len(self._ids), count, replace=False)
        gone, fresh = self._ids[places], np.arange(self._next, self._next + count)
        self._ids[places] = fresh
        self._next += count
        return fresh.tolist(), gone.tolist()


def update_relation(
    dsn: str, table: str, *, updates: int, joining: JoiningRows, values: int, chance: random.Random
) -> None:
    """Half inserts, half deletes of existing rows, in one transaction."""
    fresh, gone = joining.exchange(max(1, updates // 2))
    lefts, rights = ([chance.randrange(values) for _ in fresh] for _ in range(2))
    with psycopg.connect(dsn) as connection:
        connection.execute(
            f"INSERT INTO {table} SELECT i, a, b, md5(i::text) "
            "FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS u(i, a, b)",
            [fresh, lefts, rights],
        )
        connection.execute(f"DELETE FROM {table} WHERE id = ANY(%s::bigint[])", [gone])


def chain_view(tables: Sequence[str]) -> str:
    """The view over a chain of relations, with all their columns."""
    items = ", ".join(
        f"{table}.{column} AS {column}{number}"
        for number, table in enumerate(tables)
        for column in ("id", "a", "b", "payload")
    )
    joins = " ".join(f"JOIN {table} ON {before}.b = {table}.a" for before, table in pairwise(tables))
    return f"SELECT {items} FROM {tables[0]} {joins}"
