"""The changes of a DuckDB table, found by comparing it with what was seen of it.

DuckDB refuses INSERT OR REPLACE into a table with triggers, so the application's tables get none. The schema
`spillway` has a log for each table: all rows that were ever seen, with their weights, and the number of the
look that found them. A look adds up the log, compares the sums with the table as it is, and appends the
difference. So it does not matter how rows came and went, or whether the table was replaced; only its columns
must be the same. A look reads the whole table and its log, which costs about a second for a million rows; the
log is about as large as the table, and is rewritten when it is twice as large.
"""

from __future__ import annotations

from uuid import uuid4

import duckdb

from spillway.errors import SourceError
from spillway.maintain.identifier import quoted

SCHEMA = "spillway"
_LOOKS = f"{SCHEMA}.looks"
_SLACK_ROWS = 1_000


class DuckDbCapture:
    """The log of one table, in the caller's transaction; `table` is `name` or `schema.name`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self._connection = connection
        schema, _, self._name = table.rpartition(".")
        self._schema = schema or "main"
        self._asked = table

    @property
    def relation(self) -> str:
        """The name of the table by which all else is kept."""
        return f"{self._schema}.{self._name}".lower()

    @property
    def source(self) -> str:
        return f"{quoted(self._schema)}.{quoted(self._name)}"

    @property
    def log(self) -> str:
        return f"{SCHEMA}.{quoted(f'log of {self.relation}')}"

    def columns(self) -> list[tuple[str, str]]:
        found = self._described(self._schema, self._name)
        if not found:
            raise SourceError(
                f"the DuckDB source has no table {self._asked}; check table in the job file "
                "(schema.table, if it is not in the schema main)"
            )
        return found

    def create(self) -> None:
        """Note all rows as they are now; a log that fits is kept."""
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {_LOOKS} "
            "(relation TEXT PRIMARY KEY, incarnation TEXT, number BIGINT)"
        )
        if self.incarnation() is not None:
            return
        self.drop()
        names = ", ".join(quoted(name) for name, _ in self.columns())
        self._connection.execute(
            f"CREATE TABLE {self.log} AS SELECT 0::BIGINT AS spillway_number, 1::BIGINT AS spillway_weight, "
            f"{names} FROM {self.source}"
        )
        self._connection.execute(f"INSERT INTO {_LOOKS} VALUES (?, ?, 0)", [self.relation, uuid4().hex])

    def drop(self) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {self.log}")
        self._connection.execute(f"DELETE FROM {_LOOKS} WHERE relation = ?", [self.relation])

    def incarnation(self) -> str | None:
        """A name of this log that no other has; None: there is none with the table's columns."""
        if not self._described(SCHEMA, "looks"):
            return None
        found = self._connection.execute(
            f"SELECT incarnation FROM {_LOOKS} WHERE relation = ?", [self.relation]
        ).fetchall()
        logged = self._described(SCHEMA, f"log of {self.relation}")[2:]
        fits = found and logged and logged == self._described(self._schema, self._name)
        return str(found[0][0]) if fits else None

    def look(self) -> int:
        """Append to the log what has changed since the last look; the number of the last one with changes."""
        listed, keys = self._listed_and_keys()
        number = self._number() + 1
        self._connection.execute(
            f"INSERT INTO {self.log} SELECT {number}, sum(spillway_weight)::BIGINT, {listed} FROM "
            f"(SELECT 1 AS spillway_weight, {listed} FROM {self.source} UNION ALL "
            f"SELECT -spillway_weight, {listed} FROM {self.log}) "
            f"GROUP BY {keys} HAVING sum(spillway_weight) <> 0"
        )
        found = self._connection.execute(f"SELECT 1 FROM {self.log} WHERE spillway_number = {number} LIMIT 1")
        if not found.fetchall():
            return number - 1
        self._connection.execute(
            f"UPDATE {_LOOKS} SET number = ? WHERE relation = ?", [number, self.relation]
        )
        return number

    def prune(self, number: int) -> None:
        """Nobody asks for changes up to this number; sum them up if that makes the log much shorter."""
        ((logged, rows),) = self._connection.execute(
            f"SELECT (SELECT count(*) FROM {self.log}), (SELECT count(*) FROM {self.source})"
        ).fetchall()
        if logged <= 2 * rows + _SLACK_ROWS:
            return
        listed, keys = self._listed_and_keys()
        self._connection.execute(
            f"CREATE OR REPLACE TABLE {self.log} AS "
            f"SELECT 0::BIGINT AS spillway_number, sum(spillway_weight)::BIGINT AS spillway_weight, {listed} "
            f"FROM {self.log} WHERE spillway_number <= {number} "
            f"GROUP BY {keys} HAVING sum(spillway_weight) <> 0 "
            f"UNION ALL SELECT spillway_number, spillway_weight, {listed} FROM {self.log} "
            f"WHERE spillway_number > {number}"
        )

    def _listed_and_keys(self) -> tuple[str, str]:
        """The columns, and what rows are grouped by: under a collation texts that differ may be equal.

        Zeros and NaNs of different bits are equal on purpose: a view has one of each (`algebra.canonical`).
        """
        names = [quoted(name) for name, _ in self.columns()]
        texts = [f"encode({quoted(name)})" for name, kind in self.columns() if kind == "VARCHAR"]
        return ", ".join(names), ", ".join([*names, *texts])

    def _number(self) -> int:
        ((number,),) = self._connection.execute(
            f"SELECT number FROM {_LOOKS} WHERE relation = ?", [self.relation]
        ).fetchall()
        return int(number)

    def _described(self, schema: str, name: str) -> list[tuple[str, str]]:
        return self._connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = current_database() "
            "AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?) ORDER BY column_index",
            [schema, name],
        ).fetchall()
