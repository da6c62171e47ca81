"""Pending input: rows that have arrived and are durable, but were not probed yet.

A pending file holds rows of one operator input, hash column first. A reference to it, kept in the manifest
per processor, says how far it was consumed: `skip` rows are done, and `emitted` results of the next row are
already out (a probe may stop inside a row). Rows of groups outside `groups` are somebody else's: a file holds
rows of many groups, whose turns come at different times. How many rows of each are left is known exactly.
Pending rows belong to no generation: what counts is the epoch that probes a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spillway.model import GroupSet, group_set, listed, members
from spillway.state.rows.group import flags, group_of
from spillway.state.rows.run import read_encoded, write_encoded
from spillway.state.rows.sorted_rows import SortedRows, concat, take
from spillway.state.storage import Storage


@listed("name groups counts earliest input rows bytes crc32 memory_bytes skip emitted")
@dataclass(frozen=True, slots=True)
class Pending:
    """A reference to the rest of a pending file."""

    name: str
    input: int
    rows: int
    bytes: int
    crc32: int
    memory_bytes: int
    """What all rows of the file take in memory."""
    groups: GroupSet
    """The groups whose rows are still to be probed, by this reference."""
    counts: tuple[int, ...]
    """How many rows of each of them, in the order of their numbers."""
    skip: int = 0
    emitted: int = 0
    earliest: int | None = None
    """The least event time in the file, if its rows wait for the watermark to pass them."""

    @property
    def unread_rows(self) -> int:
        """Rows of the file that were not looked at yet, whoever they belong to."""
        return self.rows - self.skip

    @property
    def rows_left(self) -> int:
        return sum(self.counts)

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory, on average."""
        return -(-self.memory_bytes // max(1, self.rows))

    @property
    def bytes_left(self) -> int:
        """What the rows that are left take in memory."""
        return self.rows_left * self.row_bytes

    def only(self, groups: GroupSet) -> "Pending":
        """The part of it that is of these groups."""
        if not self.groups & ~groups:
            return self
        kept = {group: count for group, count in self.group_rows.items() if groups >> group & 1}
        return replace(self, groups=group_set(kept), counts=tuple(kept.values()))

    @property
    def group_rows(self) -> dict[int, int]:
        """How many rows of each group are left."""
        return dict(zip(members(self.groups), self.counts, strict=True))

    def after(self, rows: int, probed: Mapping[int, int]) -> "Pending":
        """What is left when `rows` more rows of the file were read, and `probed` of each group probed."""
        left = {group: count - probed.get(group, 0) for group, count in self.group_rows.items()}
        some = {group: count for group, count in left.items() if count}
        counts = tuple(some.values())
        return replace(self, groups=group_set(some), counts=counts, skip=self.skip + rows, emitted=0)

    def has_final(self, watermark: int | None) -> bool:
        """Whether rows of it may be taken now."""
        return self.earliest is None or (watermark is not None and self.earliest < watermark)


class PendingWriter:
    """Parks rows of one input in files of bounded size, so that any amount passes through little memory."""

    def __init__(
        self,
        storage: Storage,
        stem: str,
        input_: int,
        groups: int,
        file_bytes: int,
        time: int | None = None,
    ) -> None:
        self._storage = storage
        self._stem = stem
        self._input = input_
        self._groups = groups
        self._file_bytes = file_bytes
        self._time = time
        self._buffered: list[SortedRows] = []
        self._buffered_bytes = 0
        self._written: list[Pending] = []

    def write(self, rows: SortedRows) -> None:
        """Many rows become a file of their own, so that they are not copied; few wait for others."""
        size = rows.nbytes
        if size >= self._file_bytes // 2:
            self._flush()
        if rows.rows:
            self._buffered.append(rows)
            self._buffered_bytes += size
        if self._buffered_bytes >= self._file_bytes // 2:
            self._flush()

    def close(self) -> list[Pending]:
        """Finish the files; the references to them in the order of writing."""
        self._flush()
        return self._written

    def _flush(self) -> None:
        if not self._buffered:
            return
        rows = SortedRows(
            np.concatenate([part.hashes for part in self._buffered]),
            concat([part.columns for part in self._buffered]),
        )
        name = f"{self._stem}-{self._input}-{len(self._written)}.pending"
        size, checksum = write_encoded(self._storage, name, rows, {"pending": name}, None)
        earliest = None if self._time is None else int(rows.columns.column(self._time).to_numpy().min())
        counts = group_counts(rows, self._groups)
        mask, values = group_set(counts), tuple(counts.values())
        self._written.append(
            Pending(
                name, self._input, rows.rows, size, checksum, rows.nbytes, mask, values, earliest=earliest
            )
        )
        self._buffered, self._buffered_bytes = [], 0


@dataclass(slots=True)
class PendingReader:
    """Reads pending files bit by bit. The last one stays open; on local storage it is mapped, not copied."""

    storage: Storage
    groups: int
    _name: str | None = None
    _whole: SortedRows | None = None

    def read(self, pending: Pending, limit: int) -> tuple[int, SortedRows]:
        """The next rows of its groups, up to `limit`; and how many rows of the file that are with others."""
        whole = self._open(pending)
        hashes = whole.hashes[pending.skip :]
        mine = np.flatnonzero(flags(pending.groups, self.groups)[group_of(hashes, self.groups)])
        if len(mine) > limit:
            mine = mine[:limit]
            hashes = hashes[: mine[-1] + 1]
        columns = whole.columns.slice(pending.skip, len(hashes))
        if len(mine) < len(hashes):
            return len(hashes), SortedRows(hashes[mine], take(columns, mine))
        return len(hashes), SortedRows(hashes, columns)

    def _open(self, pending: Pending) -> SortedRows:
        if self._whole is None or self._name != pending.name:
            self._whole = None  # before the next is there
            self._whole = read_encoded(self.storage, pending.name, pending.bytes, pending.crc32)
            self._name = pending.name
        return self._whole


def group_counts(rows: SortedRows, groups: int) -> dict[int, int]:
    """How many rows there are of each group that has any."""
    counts = np.bincount(group_of(rows.hashes, groups), minlength=groups)
    return {int(group): int(counts[group]) for group in np.flatnonzero(counts)}


def restricted_to(queue: Sequence[Pending], groups: GroupSet) -> tuple[Pending, ...]:
    """The part of a queue that is of these groups."""
    return tuple(entry.only(groups) for entry in queue if entry.groups & groups)
