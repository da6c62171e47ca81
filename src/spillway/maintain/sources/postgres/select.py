"""What a PostgreSQL server is asked for, as SQL: all rows, rows that have some keys, changes since a vector.

Several of these go into one COPY, each row with the number of its select, and come back as CSV. The keys of a
query are array constants in its text, which Arrow writes for all keys at once: one message, nothing created
on the server, and the planner knows how many there are.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from psycopg import sql

from spillway.maintain.delta import WEIGHT, column_names, delta_schema
from spillway.maintain.sources.postgres.capture import Table, change_table
from spillway.maintain.sources.server import SourceTable
from spillway.model import Column

_NUMBER = "select_number"
_THREADED_BYTES = 1 << 20
_HASHED_ANY = 140_000
"""The server version from which `= ANY(array)` uses a hash table instead of a loop."""
_KEY_TYPES = {
    "boolean": "boolean", "smallint": "smallint", "int": "integer", "bigint": "bigint", "float": "real",
    "double": "double precision", "string": "text", "date": "date", "timestamp_ntz": "timestamp",
    "timestamp": "timestamptz",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Select:
    """Signed rows of a relation; `source` names what has its columns `r`."""

    source: sql.Composable
    weight: sql.Composable = field(default_factory=lambda: sql.SQL("1"))
    where: sql.Composable = field(default_factory=lambda: sql.SQL("true"))


def all_rows(relation: SourceTable) -> Select:
    return Select(_table(relation))


def changes_since(relation: SourceTable, vector: str, *, sign: int = 1) -> Select:
    """Changes that the asking transaction sees and `vector` does not contain.

    Transactions below the snapshot's xmin are in it, so the index finds the few rows to look at.
    """
    where = sql.SQL(
        "r.spillway_xid >= pg_snapshot_xmin({vector}::pg_snapshot) "
        "AND NOT pg_visible_in_snapshot(r.spillway_xid, {vector}::pg_snapshot)"
    ).format(vector=sql.Literal(vector))
    source = sql.SQL("{} r").format(change_table(relation.table))
    return Select(source, sql.SQL("r.spillway_weight * {}").format(sql.Literal(sign)), where)


def oldest_change(relations: Sequence[SourceTable], vector: str) -> sql.Composed:
    """The age in seconds of the oldest of these changes."""
    tables = dict.fromkeys(relation.table for relation in relations)
    each = [
        sql.SQL("SELECT min(r.spillway_at) FROM {} WHERE {}").format(select.source, select.where)
        for select in (changes_since(SourceTable(table, ()), vector) for table in tables)
    ]
    return sql.SQL("SELECT extract(epoch FROM clock_timestamp() - min(at)) FROM ({}) t(at)").format(
        sql.SQL(" UNION ALL ").join(each)
    )


def rows_with(relation: SourceTable, columns: Sequence[Column], keys: sql.Composable) -> Select:
    """The rows that `keys`, which is called `k` and has `columns`, names."""
    on = sql.SQL(" AND ").join(
        sql.SQL("r.{name} = k.{name}").format(name=sql.Identifier(column.name)) for column in columns
    )
    return Select(sql.SQL("{} JOIN {} ON {}").format(keys, _table(relation), on))


def rows_with_keys(relation: SourceTable, columns: Sequence[Column], keys: pa.Table, version: int) -> Select:
    """The rows that have the values of one row of `keys` in `columns`; `keys` has no NULL.

    Servers from version 14 on look up one column in a hash table of the array while they scan. Several
    columns are joined; DISTINCT, because a planner that believes in many equal keys hashes the relation.
    """
    arrays = [
        sql.SQL("{}::{}[]").format(sql.Literal(array_text(values)), sql.SQL(_key_type(column.type)))
        for column, values in zip(columns, keys.columns, strict=True)
    ]
    if len(columns) == 1 and version >= _HASHED_ANY:
        where = sql.SQL("r.{} = ANY({})").format(sql.Identifier(columns[0].name), arrays[0])
        return Select(_table(relation), where=where)
    names = sql.SQL(", ").join(sql.Identifier(column.name) for column in columns)
    rows = sql.SQL("(SELECT DISTINCT * FROM unnest({}) u({names})) k").format(
        sql.SQL(", ").join(arrays), names=names
    )
    return rows_with(relation, columns, rows)


def array_text(values: pa.ChunkedArray) -> str:
    """An array constant as PostgreSQL reads it: `{1,2}`, with quotes around all that are not integers."""
    texts = values.cast(pa.string()).combine_chunks()
    if not pa.types.is_integer(values.type):
        for special in ("\\", '"'):
            texts = pc.replace_substring(texts, special, "\\" + special)
        texts = pc.binary_join_element_wise('"', texts, '"', "")
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return "{" + str(pc.binary_join(whole, ",")[0].as_py()) + "}"


def copy_statement(relation: SourceTable, selects: Sequence[Select]) -> sql.Composed:
    """All selects as one statement, and so with one snapshot."""
    columns = sql.SQL(", ").join(
        sql.SQL("r.{} AT TIME ZONE 'UTC'" if column.type == "timestamp" else "r.{}").format(
            sql.Identifier(column.name)
        )
        for column in relation.columns
    )
    texts = [
        sql.SQL("SELECT {}, {}, {} FROM {} WHERE {}").format(
            columns, select.weight, sql.Literal(number), select.source, select.where
        )
        for number, select in enumerate(selects)
    ]
    return sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(sql.SQL(" UNION ALL ").join(texts))


def read_copied(data: bytes, relation: SourceTable, selects: int) -> list[pa.Table]:
    """The signed rows of each select of a `copy_statement`."""
    schema = delta_schema(relation.columns)
    if not data:
        return [schema.empty_table()] * selects
    plain = {
        field.name: pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type
        for field in schema
    }
    table = pa_csv.read_csv(
        io.BytesIO(data),
        read_options=pa_csv.ReadOptions(
            column_names=[*column_names(relation.columns), WEIGHT, _NUMBER],
            use_threads=len(data) > _THREADED_BYTES,
        ),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=plain | {_NUMBER: pa.int32()},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    rows = table.select(schema.names).cast(schema)
    if selects == 1:
        return [rows]
    return [rows.filter(pc.equal(table.column(_NUMBER), number)) for number in range(selects)]


def _table(relation: SourceTable) -> sql.Composed:
    return sql.SQL("{} r").format(Table.identifier(relation.table))


def _key_type(kind: str) -> str:
    return "numeric" if kind.startswith("decimal") else _KEY_TYPES[kind]
