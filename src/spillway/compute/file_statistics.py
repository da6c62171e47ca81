"""Statistics of relations in Parquet files within a time limit: footers first, then samples of their rows.

Footers have rows, sizes and ranges of integer keys, and take milliseconds to read. The remaining time goes to
the relations, small ones first: these are read completely, and sketches give their join sizes. Of a larger
one some row groups are read, spread over its files: they show how many rows its filter lets pass and how
often keys repeat. Known limit: a filter that DuckDB cannot test is assumed to let a third of the rows pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp as sql_exp
from sqlglot.errors import SqlglotError

from spillway.compute.key_sketch import key_sketch
from spillway.compute.sketch import SLOT_BYTES, KeySketch, RelationStatistics

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS, TEXT_ROWS = 1 << 15, 1 << 12
READING_SHARE = 0.35
"""The share of a relation's time for reading; the rest is for filtering and counting what was read."""
UNKNOWN_SHARE = 1 / 3
"""The share of rows that a filter is assumed to let pass if it cannot be tested here."""
SPLIT_BYTES = 4 << 20
"""Spark reads files of more than this in several tasks."""


@dataclass(frozen=True, slots=True)
class ParquetRelation:
    """A relation of a view whose rows are in local Parquet files."""

    files: tuple[str, ...]
    columns: tuple[tuple[str, str | None], ...]
    """The name in the view and the column in the files; None for an expression."""
    keys: frozenset[str]
    """Those columns of the view that are keys."""
    filter: str | None = None
    """In Spark SQL over the columns of the files."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The open files of one relation, and what their footers say."""

    relation: ParquetRelation
    files: tuple[pq.ParquetFile, ...]
    rows: int
    file_bytes: int


class Footers:
    """The files of all relations, open while this is entered as a context manager."""

    def __init__(self, relations: Sequence[ParquetRelation]) -> None:
        self._relations = relations
        self._footers: list[Footer] = []
        self._closing = ExitStack()

    @property
    def rows(self) -> list[int]:
        return [footer.rows for footer in self._footers]

    def statistics(self, limit_seconds: float, clock: Callable[[], float]) -> list[RelationStatistics]:
        """One entry per relation, in about `limit_seconds`."""
        made: dict[int, RelationStatistics] = {}
        order = sorted(range(len(self._footers)), key=self.rows.__getitem__)
        with ExitStack() as closing:
            database = None
            if any(relation.filter is not None for relation in self._relations):
                import duckdb  # only here, as it takes a fifth of a second

                database = closing.enter_context(duckdb.connect())
            until = clock() + limit_seconds
            for done, number in enumerate(order):
                own_until = clock() + (until - clock()) / (len(order) - done)
                made[number] = _statistics(self._footers[number], own_until, clock, database)
        return [made[number] for number in range(len(order))]

    def __enter__(self) -> Footers:
        with ExitStack() as closing:
            self._footers = [_footer(relation, closing) for relation in self._relations]
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()


def _footer(relation: ParquetRelation, closing: ExitStack) -> Footer:
    files = tuple(closing.enter_context(pq.ParquetFile(file)) for file in relation.files)
    size = sum(
        file.metadata.row_group(group).total_byte_size
        for file in files
        for group in range(file.metadata.num_row_groups)
    )
    return Footer(relation, files, sum(file.metadata.num_rows for file in files), size)


def _statistics(
    footer: Footer, until: float, clock: Callable[[], float], database: duckdb.DuckDBPyConnection | None
) -> RelationStatistics:
    relation = footer.relation
    wanted, condition = _needed(footer)
    began = clock()
    seen = _sample(footer, wanted, began + (until - began) * READING_SHARE, clock)
    kept = seen if relation.filter is None else _filtered(seen, condition, database)
    rows = round(footer.rows * UNKNOWN_SHARE)
    if kept is not None:
        rows = round(kept.num_rows * footer.rows / max(seen.num_rows, 1))
    keys = {
        name: _key(footer, column, seen, kept, rows)
        for name, column in relation.columns
        if name in relation.keys
    }
    groups = sum(file.metadata.num_row_groups for file in footer.files)
    filled = sum(file.metadata.num_rows > 0 for file in footer.files)
    tasks = min(max(groups, filled), filled + footer.file_bytes // SPLIT_BYTES)
    row_bytes = SLOT_BYTES * (len(relation.columns) + 1) + _text_bytes(footer)
    return RelationStatistics(rows, row_bytes, keys, tasks)


def _needed(footer: Footer) -> tuple[list[str], str | None]:
    """The columns to read, and the filter for DuckDB; None if it cannot be tested."""
    relation = footer.relation
    names = set.intersection(*({field.name for field in file.schema_arrow} for file in footer.files))
    wanted = [column for name, column in relation.columns if name in relation.keys and column in names]
    if relation.filter is None:
        return list(dict.fromkeys(filter(None, wanted))), None
    try:
        tree = sqlglot.parse_one(relation.filter, read="spark")
        condition = tree.sql(dialect="duckdb")
    except SqlglotError:
        return list(dict.fromkeys(filter(None, wanted))), None
    used = [column.name for column in tree.find_all(sql_exp.Column)]
    if not names.issuperset(used):
        return list(dict.fromkeys(filter(None, wanted))), None
    return list(dict.fromkeys([*filter(None, wanted), *used])), condition


def _sample(footer: Footer, columns: list[str], until: float, clock: Callable[[], float]) -> pa.Table:
    """Rows of some row groups, spread over all: as many as there is time for, at least one batch."""
    batches: list[pa.RecordBatch] = []
    for file, group in _spread(footer.files):
        for batch in file.iter_batches(BATCH_ROWS, [group], columns, use_threads=False):
            batches.append(batch)
            if clock() >= until:
                return _table(footer, columns, batches)
    return _table(footer, columns, batches)


def _table(footer: Footer, columns: list[str], batches: list[pa.RecordBatch]) -> pa.Table:
    if batches:
        tables = [pa.table(batch) for batch in batches]
        return pa.concat_tables(tables, promote_options="permissive")
    schema = footer.files[0].schema_arrow if footer.files else pa.schema([])
    return pa.schema([schema.field(name) for name in columns]).empty_table()


def _spread(files: Sequence[pq.ParquetFile]) -> Iterator[tuple[pq.ParquetFile, int]]:
    """All row groups: the middle one, then the middles of both halves, and so on."""
    groups = [(file, group) for file in files for group in range(file.metadata.num_row_groups)]
    ranges = [(0, len(groups))]
    while ranges:
        begin, end = ranges.pop(0)
        if begin < end:
            middle = (begin + end) // 2
            yield groups[middle]
            ranges += [(begin, middle), (middle + 1, end)]


def _filtered(
    seen: pa.Table, condition: str | None, database: duckdb.DuckDBPyConnection | None
) -> pa.Table | None:
    """The rows that pass; None if the filter cannot be tested here."""
    if condition is None or database is None:
        return None
    import duckdb

    database.register("seen", seen)
    try:
        return database.sql(f"SELECT * FROM seen WHERE {condition}").to_arrow_table()
    except duckdb.Error:
        return None  # only Spark understands it
    finally:
        database.unregister("seen")


def _key(footer: Footer, column: str | None, seen: pa.Table, kept: pa.Table | None, rows: int) -> KeySketch:
    """`kept` are the rows of the sample `seen` that pass the filter, if that is known."""
    if column is None or column not in seen.column_names:
        return KeySketch(None, rows, float(rows), float(footer.rows))
    share = seen.num_rows / max(footer.rows, 1)
    is_integer = pa.types.is_integer(seen[column].type)
    domain = None if is_integer and kept is seen and share >= 1 else _distinct(footer, column, seen)
    if kept is not None and is_integer and kept.num_rows:
        if share >= 1:
            return replace(key_sketch(kept[column]), domain=domain)
        if not _range(footer, column)[1]:
            sketch = key_sketch(kept[column])
            assert sketch.counters is not None
            distinct = min(domain or 1.0, max(rows, 1))
            return KeySketch(sketch.counters / share, round(sketch.rows / share), distinct, domain, share)
    filled = 1 - seen[column].null_count / seen.num_rows if seen.num_rows else 1.0
    known = domain or 1.0
    return KeySketch(None, round(rows * filled), min(known, max(rows, 1)), known)


def _distinct(footer: Footer, column: str, seen: pa.Table) -> float:
    """Distinct keys of the whole relation, before filters."""
    span, is_clustered = _range(footer, column)
    most: float = min(span, float(max(footer.rows, 1)))
    if not seen.num_rows:
        return most
    found = float(pc.count_distinct(_plain(seen[column]), mode="only_valid").as_py())
    if seen.num_rows == footer.rows:
        return max(found, 1.0)
    if is_clustered:
        return max(1.0, min(most, float(found * footer.rows / seen.num_rows)))
    return max(1.0, min(most, _drawn_from(found, seen.num_rows, most)))


def _drawn_from(found: float, drawn: int, most: float) -> float:
    """From how many keys `drawn` rows were drawn, if `found` of those rows have different keys."""
    low, high = found, max(found, most)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * (1 - exp(-drawn / middle)) < found else (low, middle)
    return high


def _range(footer: Footer, column: str) -> tuple[float, bool]:
    """How many integers lie between the smallest and the largest key, and whether row groups have ranges of
    their own; infinity and False if footers do not say."""
    bounds = []
    for file in footer.files:
        metadata = file.metadata
        names = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
        if column not in names:
            return float("inf"), False
        place = names.index(column)
        for group in range(metadata.num_row_groups):
            known = metadata.row_group(group).column(place).statistics
            if known is None or not known.has_min_max or not isinstance(known.min, int):
                return float("inf"), False
            bounds.append((known.min, known.max))
    if not bounds:
        return float("inf"), False
    span = max(high for _, high in bounds) - min(low for low, _ in bounds) + 1
    return float(span), len(bounds) > 1 and sum(high - low for low, high in bounds) <= 2 * span


def _text_bytes(footer: Footer) -> float:
    """Bytes of text per row, from a few rows in the middle."""
    wanted = {column for _, column in footer.relation.columns}
    for file, group in _spread(footer.files):
        text = [field.name for field in file.schema_arrow if field.name in wanted and _is_text(field.type)]
        for batch in file.iter_batches(TEXT_ROWS, [group], text) if text else ():
            lengths = [pc.sum(pc.binary_length(_plain(batch[name]))).as_py() or 0 for name in text]
            return float(sum(lengths) / max(batch.num_rows, 1))
    return 0.0


def _plain(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The same values without views, which Arrow can neither measure nor count."""
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        return values.cast(pa.binary())
    return values


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )
