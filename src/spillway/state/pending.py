"""Pending input: rows that have arrived and are durable, but were not probed yet.

A pending file holds rows of one operator input, hash column first. A reference to it, kept in the manifest
per processor, says how far it was consumed: `skip` rows are done, and `emitted` results of the next row are
already out (a probe may stop inside a row). Rows of groups outside `groups` are somebody else's.
Pending rows belong to no generation: what counts is the epoch that probes a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spillway.model.group_set import GroupSet, from_hex, to_hex
from spillway.state.group import flags, group_of
from spillway.state.run import read_encoded, write_encoded
from spillway.state.segment import Segment, concat, take
from spillway.state.storage import Storage


@dataclass(frozen=True, slots=True)
class Pending:
    """A reference to the rest of a pending file."""

    name: str
    input: int
    rows: int
    bytes: int
    crc32: int
    groups: GroupSet
    skip: int = 0
    emitted: int = 0
    earliest: int | None = None
    """The least event time in the file, if its rows wait for the watermark to pass them."""

    @property
    def rows_left(self) -> int:
        return self.rows - self.skip

    @property
    def bytes_left(self) -> int:
        return self.bytes * self.rows_left // max(1, self.rows)

    def after(self, rows: int) -> "Pending":
        """What is left when `rows` more rows were probed."""
        return replace(self, skip=self.skip + rows, emitted=0)

    def has_final(self, watermark: int | None) -> bool:
        """Whether rows of it may be taken now."""
        return self.earliest is None or (watermark is not None and self.earliest < watermark)

    def to_json(self) -> list[object]:
        counts = [self.input, self.rows, self.bytes, self.crc32, self.skip, self.emitted]
        return [self.name, to_hex(self.groups), *counts, *([] if self.earliest is None else [self.earliest])]

    @staticmethod
    def from_json(fields: list[object]) -> "Pending":
        name, groups, *counts = fields
        input_, rows, size, checksum, skip, emitted, *earliest = (int(str(count)) for count in counts)
        where = (skip, emitted, *earliest)
        return Pending(str(name), input_, rows, size, checksum, from_hex(str(groups)), *where)


class PendingWriter:
    """Parks rows of one input in files of bounded size, so that any amount passes through little memory."""

    def __init__(
        self,
        storage: Storage,
        stem: str,
        input_: int,
        groups: GroupSet,
        file_bytes: int,
        time: int | None = None,
    ) -> None:
        self._storage = storage
        self._stem = stem
        self._input = input_
        self._groups = groups
        self._file_bytes = file_bytes
        self._time = time
        self._buffered: list[Segment] = []
        self._buffered_bytes = 0
        self._written: list[Pending] = []

    def write(self, rows: Segment) -> None:
        if rows.rows:
            self._buffered.append(rows)
            self._buffered_bytes += rows.nbytes
        if self._buffered_bytes >= self._file_bytes:
            self._flush()

    def close(self) -> list[Pending]:
        """Finish the files; the references to them in the order of writing."""
        self._flush()
        return self._written

    def _flush(self) -> None:
        if not self._buffered:
            return
        rows = Segment(
            np.concatenate([part.hashes for part in self._buffered]),
            concat([part.columns for part in self._buffered]),
        )
        name = f"{self._stem}-{self._input}-{len(self._written)}.pending"
        size, checksum = write_encoded(self._storage, name, rows, {"pending": name}, "lz4")
        earliest = None if self._time is None else int(rows.columns.column(self._time).to_numpy().min())
        self._written.append(
            Pending(name, self._input, rows.rows, size, checksum, self._groups, earliest=earliest)
        )
        self._buffered, self._buffered_bytes = [], 0


def read_pending(storage: Storage, pending: Pending, groups: int, limit: int) -> tuple[int, Segment]:
    """Up to `limit` rows of the rest of the file: how many rows of the file that is, and those that count."""
    whole = read_encoded(storage, pending.name, pending.bytes, pending.crc32)
    stop = min(pending.rows, pending.skip + limit)
    hashes = whole.hashes[pending.skip : stop]
    columns = whole.columns.slice(pending.skip, stop - pending.skip)
    mine = flags(pending.groups, groups)[group_of(hashes, groups)]
    if not mine.all():
        rows = np.flatnonzero(mine)
        hashes, columns = hashes[rows], take(columns, rows)
    return stop - pending.skip, Segment(hashes, columns)


def consume(pending: Sequence[Pending], rows: int) -> tuple[Pending, ...]:
    """The references that are left after the first `rows` rows of the queue were probed."""
    left = []
    for entry in pending:
        done = min(rows, entry.rows_left)
        rows -= done
        if done < entry.rows_left:
            left.append(entry.after(done) if done else entry)
    return tuple(left)
