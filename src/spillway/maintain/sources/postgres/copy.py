"""Reads what COPY sends without a step of Python's machinery per row.

PostgreSQL sends one message per row, and psycopg waits for each of them by a generator of its own. Here one
generator takes all that has arrived, and waits only when there is nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg
from psycopg import sql
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.waiting import Ready, Wait


def copied_bytes(connection: psycopg.Connection[Any], statement: sql.Composed) -> bytes:
    """All that `COPY ... TO STDOUT` gives."""
    with connection.cursor().copy(statement):
        return b"".join(connection.wait(_messages(connection)))


def _messages(connection: psycopg.Connection[Any]) -> Generator[Wait, Ready | int, list[Any]]:
    pgconn, messages = connection.pgconn, list[Any]()
    while True:
        size, message = pgconn.get_copy_data(1)
        if size > 0:
            messages.append(message)
        elif size < 0:
            break
        else:
            while not (yield Wait.R):
                continue
            pgconn.consume_input()
    while True:
        while pgconn.is_busy():
            while not (yield Wait.R):
                continue
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            return messages
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)
