"""Messages of PostgreSQL's output plug-in `pgoutput` (protocol 1) as columns: transactions and signed rows.

All messages are one buffer with the places where they begin. Tuples are walked column by column, for all
rows at once: a cell begins where the one before it ended. Values are text, as PostgreSQL writes them for a
session with ISO dates and the time zone UTC. An update is a row that goes and a row that comes; for that,
and for deletes, tables must have REPLICA IDENTITY FULL. A value that is stored apart from its row, and that
an update left alone, is not sent again: it is taken from the row that goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spillway.errors import SourceError
from spillway.maintain.delta import WEIGHT, column_names, delta_schema
from spillway.model import Column
from spillway.plan.expression import arrow_type

Ints = NDArray[np.int64]
_PADDING = b"\0" * 16
_INSERT, _UPDATE, _DELETE, _BEGIN, _RELATION = b"IUDBR"
_OLD, _NEW = b"ON"
_NULL, _UNCHANGED, _TEXT = b"nut"


@dataclass(frozen=True, slots=True)
class Transactions:
    """Those that committed, in the order of their commits."""

    ids: Ints
    """The lower 32 bits."""
    commits: Ints
    """Where in the log each one's commit is."""
    times: Ints
    """When it committed, in microseconds since 2000."""


@dataclass(frozen=True, slots=True)
class _Era:
    """A table as it was for some messages."""

    name: tuple[str, str]
    columns: tuple[str, ...]
    messages: Ints


@dataclass(frozen=True, slots=True)
class _Cells:
    """One column of some tuples: kinds, and where the texts are."""

    kinds: NDArray[np.uint8]
    starts: Ints
    lengths: Ints

    def taken(self, places: NDArray[np.bool_]) -> _Cells:
        return _Cells(self.kinds[places], self.starts[places], self.lengths[places])


class DecodedChanges:
    """What a slot gave: `data` is all messages, `lengths` the length of each."""

    def __init__(self, data: bytes, lengths: Ints) -> None:
        self._bytes = np.frombuffer(data + _PADDING, np.uint8)
        self._starts = np.cumsum(lengths) - lengths
        self._kinds = self._bytes[self._starts]
        begins = self._starts[self._kinds == _BEGIN]
        self._transaction = np.cumsum(self._kinds == _BEGIN) - 1
        self.transactions = Transactions(
            self._number(begins + 17, 4), self._number(begins + 1, 8), self._number(begins + 9, 8)
        )
        self._eras = list(self._read_eras())

    def inserted(
        self, table: tuple[str, str], columns: Sequence[Column], kept: NDArray[np.bool_]
    ) -> pa.Table:
        """The rows that kept transactions inserted into a table, as a delta."""
        return self._delta(table, columns, kept, b"I")

    def changed(self, table: tuple[str, str], columns: Sequence[Column], kept: NDArray[np.bool_]) -> pa.Table:
        """All that kept transactions did to a table (schema and name), as a delta of `columns`."""
        return self._delta(table, columns, kept, b"IUD")

    def _delta(
        self, table: tuple[str, str], columns: Sequence[Column], kept: NDArray[np.bool_], kinds: bytes
    ) -> pa.Table:
        parts = [delta_schema(columns).empty_table()]
        for era in self._eras:
            if era.name != table:
                continue
            chosen = era.messages[kept[self._transaction[era.messages]]]
            chosen = chosen[np.isin(self._kinds[chosen], np.frombuffer(kinds, np.uint8))]
            if len(chosen):
                parts += self._signed(era, columns, chosen)
        return pa.concat_tables(parts)

    def _signed(self, era: _Era, columns: Sequence[Column], messages: Ints) -> Iterator[pa.Table]:
        missing = [column.name for column in columns if column.name not in era.columns]
        if missing:
            raise SourceError(
                f"PostgreSQL table {'.'.join(era.name)} has no column {missing[0]} in its recorded changes; "
                "run spillway maintain with --reload to load the view again"
            )
        kinds, starts = self._kinds[messages], self._starts[messages] + 5
        goes, comes = kinds != _INSERT, kinds != _DELETE
        if (self._bytes[starts[goes]] != _OLD).any():
            raise SourceError(
                f"PostgreSQL table {'.'.join(era.name)} lost its REPLICA IDENTITY FULL, so changes are "
                "incomplete; run spillway maintain with --reload, which sets it and loads the view again"
            )
        old, ends = self._cells(era, starts[goes])
        updated = kinds[goes] == _UPDATE
        where = starts.copy()
        where[kinds == _UPDATE] = ends[updated]
        new, _ = self._cells(era, where[comes])
        places = [era.columns.index(column.name) for column in columns]
        if updated.any():
            again = kinds[comes] == _UPDATE
            new = [_patched(new[place], again, old[place].taken(updated)) for place in range(len(new))]
        for cells, weight in ((old, -1), (new, 1)):
            arrays = [self._values(cells[p], column) for p, column in zip(places, columns, strict=True)]
            weights = pa.repeat(pa.scalar(weight, pa.int64()), len(cells[0].kinds) if cells else 0)
            yield pa.table([*arrays, weights], names=[*column_names(columns), WEIGHT])

    def _cells(self, era: _Era, positions: Ints) -> tuple[list[_Cells], Ints]:
        """The columns of tuples whose marks are at `positions`, and where the tuples end."""
        if (self._number(positions + 1, 2) != len(era.columns)).any():
            raise SourceError(f"the log of table {'.'.join(era.name)} has a tuple that is not of its columns")
        at, found = positions + 3, list[_Cells]()
        for _ in era.columns:
            kinds = self._bytes[at]
            is_text = kinds == _TEXT
            lengths = np.where(is_text, self._number(at + 1, 4), 0)
            found.append(_Cells(kinds, at + 5, lengths))
            at = at + np.where(is_text, 5 + lengths, 1)
        return found, at

    def _values(self, cells: _Cells, column: Column) -> pa.Array:
        """The texts of a column as values of its type."""
        if (cells.kinds == _UNCHANGED).any():
            raise SourceError(f"the log of the PostgreSQL server lacks a value of column {column.name}")
        offsets = np.concatenate(([0], np.cumsum(cells.lengths)))
        gather = np.repeat(cells.starts - offsets[:-1], cells.lengths) + np.arange(offsets[-1])
        valid = np.packbits(cells.kinds != _NULL, bitorder="little")
        buffers = [pa.py_buffer(array) for array in (valid, offsets, self._bytes[gather])]
        return typed(
            pa.LargeStringArray.from_buffers(len(cells.kinds), buffers[1], buffers[2], buffers[0]), column
        )

    def _read_eras(self) -> Iterator[_Era]:
        """Tables as the log describes them, each with the messages to which the description applies."""
        described = np.flatnonzero(self._kinds == _RELATION)
        ids = self._number(self._starts[described] + 1, 4)
        changes = np.flatnonzero(np.isin(self._kinds, np.frombuffer(b"IUD", np.uint8)))
        relations = self._number(self._starts[changes] + 1, 4)
        for number in np.unique(np.concatenate((ids, relations))):
            own, mine = described[ids == number], changes[relations == number]
            latest = np.searchsorted(own, mine) - 1
            if (latest < 0).any():
                raise SourceError("the log of the PostgreSQL server does not describe a table it changes")
            for place, message in enumerate(own):
                name, columns = self._described(int(self._starts[message]))
                yield _Era(name, columns, mine[latest == place])

    def _described(self, start: int) -> tuple[tuple[str, str], tuple[str, ...]]:
        """Schema, name and columns in a message about a table."""
        schema, at = self._word(start + 5)
        name, at = self._word(at)
        count, at, columns = int(self._number(np.array([at + 1]), 2)[0]), at + 3, list[str]()
        for _ in range(count):
            column, at = self._word(at + 1)
            columns.append(column)
            at += 8
        return (schema or "pg_catalog", name), tuple(columns)

    def _word(self, start: int) -> tuple[str, int]:
        """A text that ends with a zero byte, and what comes after it."""
        length = int(np.argmin(self._bytes[start : start + 1024]))
        return self._bytes[start : start + length].tobytes().decode(), start + length + 1

    def _number(self, positions: Ints, width: int) -> Ints:
        """Big-endian integers; those of less than eight bytes have no sign."""
        found = np.zeros(len(positions), np.int64)
        for place in range(width):
            found = (found << 8) | self._bytes[positions + place]
        return found


def _patched(new: _Cells, again: NDArray[np.bool_], old: _Cells) -> _Cells:
    """The cells of new rows; of those that `again` marks, unchanged values come from the old rows."""
    places = np.flatnonzero(again)
    same = new.kinds[places] == _UNCHANGED
    kinds, starts, lengths = new.kinds.copy(), new.starts.copy(), new.lengths.copy()
    kinds[places[same]] = old.kinds[same]
    starts[places[same]] = old.starts[same]
    lengths[places[same]] = old.lengths[same]
    return _Cells(kinds, starts, lengths)


def typed(texts: pa.Array, column: Column) -> pa.Array:
    """Values from what PostgreSQL writes for them."""
    kind = arrow_type(column.type)
    if pa.types.is_boolean(kind):
        return pc.equal(texts, "t")
    if pa.types.is_timestamp(kind):
        plain = pc.replace_substring_regex(texts, r"\+00$", "")
        return plain.cast(pa.string()).cast(pa.timestamp("us")).cast(kind)
    return texts.cast(pa.string()).cast(kind)
