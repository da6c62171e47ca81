"""Real PostgreSQL servers for tests, by number, each started when it is first asked for.

From 10 on they decode logs. Tests take databases of their own on 0 and 10; the others are for tests that kill
a server, restore its files or need a second one. Writes are not synchronised with the disk: tests kill
servers, never the machine.
"""

import signal
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

import psutil
import psycopg
import pytest

from kit.reaper import own_mark

LOGICAL = 10
STOP_SECONDS = 20.0
QUICK = "fsync = off\nfull_page_writes = off\n"
LOGS = "wal_level = logical\nmax_replication_slots = 500\n"


@dataclass(slots=True)
class PostgresServers:
    started: dict[int, Any] = field(default_factory=dict)

    def __call__(self, number: int) -> Any:
        """The handle of a server: its process id, and how to start it again."""
        if number not in self.started:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pgserver = pytest.importorskip("pgserver", reason="pgserver has no build for this Python")
                self.started[number] = _start(pgserver, QUICK + LOGS if number >= LOGICAL else QUICK)
        return self.started[number]

    def dsn(self, number: int) -> str:
        return str(self(number).get_uri())

    def database(self, number: int) -> str:
        """A new database; the address of it."""
        home, name = self.dsn(number), f"d{uuid4().hex[:12]}"
        with psycopg.connect(home, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return home.replace("/postgres?", f"/{name}?")

    def close(self) -> None:
        """All stop at once, and write nothing that would be removed the next moment."""
        processes = [server.get_postmaster_info().process for server in self.started.values()]
        for process in processes:
            process.send_signal(signal.SIGQUIT)
        psutil.wait_procs(processes, STOP_SECONDS)
        for server in self.started.values():
            server.cleanup()


def _start(pgserver: Any, settings: str) -> Any:
    """Not below pytest's own directory: a server that root starts runs as another user, and every start of
    pytest closes that directory to others."""
    from pgserver import postgres_server

    def initdb(words: list[str], pgdata: Path, **options: Any) -> None:
        made = real([*words, "--no-sync"], pgdata=pgdata, **options)
        with (pgdata / "postgresql.conf").open("a") as file:
            file.write(settings)
        return made

    real = postgres_server.initdb
    with mock.patch.object(postgres_server, "initdb", initdb):
        directory = tempfile.mkdtemp(prefix=f"spillway-pg-{own_mark()}-")
        return pgserver.get_server(directory, cleanup_mode="delete")
