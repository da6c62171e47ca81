"""One table of an embedded database as Arrow columns of types that Spark has.

SQLite values have types of their own. A column has its declared type, and a value of another type is refused.
If the declaration names no type, the values decide; for an empty table the declaration does.
"""

import sqlite3
from contextlib import closing

import duckdb
import pyarrow as pa

_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
"""Spark has no unsigned integers: these are the next types that hold all of their values."""
_DECLARED = (
    (("INT",), pa.int64()),
    (("CHAR", "CLOB", "TEXT"), pa.string()),
    (("BLOB",), pa.binary()),
    (("REAL", "FLOA", "DOUB"), pa.float64()),
)
_WITHOUT_VALUES = ((("BOOL",), pa.int64()), (("NUM", "DEC"), pa.float64()))


def read_duckdb(path: str, table: str) -> pa.Table:
    with duckdb.connect(path, read_only=True) as connection:
        rows = connection.sql(f"SELECT * FROM {_quoted(table)}").to_arrow_table()
    fields = [field.with_type(_SIGNED.get(field.type, field.type)) for field in rows.schema]
    return rows.cast(pa.schema(fields))


def read_sqlite(path: str, table: str) -> pa.Table:
    """A ValueError says which column holds a value that is not of its declared type."""
    schema, _, name = table.rpartition(".")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            cursor = connection.execute(f"SELECT * FROM {_quoted(table)}")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
            kinds = connection.execute(
                "SELECT name, type FROM pragma_table_info(?, ?)", [name, schema or "main"]
            ).fetchall()
        except sqlite3.Error as error:
            raise ValueError(str(error)) from None
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    declared = dict(kinds)
    return pa.table(
        {
            name: _column(name, list(values), declared[name])
            for name, values in zip(names, columns, strict=True)
        }
    )


def _column(name: str, values: list[object], declared: str) -> pa.Array:
    wanted = _type(declared, _DECLARED)
    try:
        found = pa.array(values)
        if pa.types.is_null(found.type):
            return found.cast(wanted or _type(declared, _WITHOUT_VALUES) or pa.string())
        return found if wanted is None else found.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise ValueError(
            f"column {name} holds a value that is not of its declared type {declared or 'none'}"
        ) from None


def _type(declared: str, types: tuple[tuple[tuple[str, ...], pa.DataType], ...]) -> pa.DataType | None:
    upper = declared.upper()
    return next((kind for words, kind in types if any(word in upper for word in words)), None)


def _quoted(name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
