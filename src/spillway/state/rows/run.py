"""Runs: the durable, immutable files of state rows.

A run holds rows of one operator input in hash order (hence in group order), as one Arrow record batch in an
Arrow IPC file: the hash column `h`, then the state columns. A reference to a run, kept in the manifest, says
which of its groups are the current generation of their group (`live`) and which belong to a generation that
was spilled (`spilled`). The two sets are disjoint; a run with neither is garbage.

Which processor serves a slice of a run is not a property of the run: it follows from the placement. So to
move a group, or to change the number of processors, rewrites nothing.

Runs of one input have an order, their `position`. A probe that stopped inside a row remembers how many
matches it has passed, so the order of the matches must not change. Only neighbours in this order are merged,
and the merged run takes the position of the first of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spillway.errors import RESTORE, StateError
from spillway.model import GroupSet, listed
from spillway.state.rows.sorted_rows import SortedRows, rows_only
from spillway.state.storage import Storage, SummedFile, crc32

FORMAT_VERSION = 1
HASH_COLUMN = "h"


class Position(NamedTuple):
    """The place of a run in the order of its input: when its oldest part was written.

    Two runs share a position only where a merge took some groups of a run and left it the others.
    """

    epoch: int
    processor: int = 0
    number: int = 0
    """Among the runs that the processor wrote in that epoch."""


class EventTimes(NamedTuple):
    """What a run's rows say about time, in microseconds."""

    earliest: int
    latest: int
    swept: int
    """Older rows than this were left out when the run was written, save those of groups that keep all."""


@listed()
@dataclass(frozen=True, slots=True)
class Run:
    """A reference to a run file and what its groups stand for."""

    name: str
    input: int
    position: Position
    last_epoch: int
    rows: int
    bytes: int
    crc32: int
    live: GroupSet
    spilled: GroupSet = 0
    times: EventTimes | None = None
    """Only in views with windows."""
    parts: int = 1
    """How many runs, as epochs wrote them, were merged into this one."""
    unsaid: GroupSet = 0
    """Those of the spilled groups whose rows here were only written, and joined with nothing yet."""


def in_order(runs: Iterable[Run]) -> list[Run]:
    """The runs in the order of their rows, which merges keep; the only order that a probe may see."""
    return sorted(runs, key=lambda run: (run.position, run.name))


def write_run(storage: Storage, name: str, segment: SortedRows, compression: str | None) -> tuple[int, int]:
    """Write the segment as the run `name`; returns its size and checksum."""
    return write_encoded(storage, name, segment, {"run": name}, compression)


def read_run(storage: Storage, run: Run) -> SortedRows:
    return read_encoded(storage, run.name, run.bytes, run.crc32)


def map_run(storage: Storage, run: Run) -> SortedRows:
    """The run without reading it whole, where the storage is local: only the pages that are used are read.

    Its size is checked, its checksum is not.
    """
    if storage.local_path(run.name) is None:
        return read_run(storage, run)
    source = storage.open_input(run.name)
    if source.size() != run.bytes:
        raise StateError(
            f"state file {storage.uri(run.name)} is cut: {source.size()} bytes, expected {run.bytes}; "
            f"{RESTORE}"
        )
    return decode(source, storage.uri(run.name))


def read_encoded(storage: Storage, name: str, size: int, checksum: int) -> SortedRows:
    """Read a whole state file back, checked against the size and checksum that the manifest has."""
    buffer = storage.read_mapped(name)
    actual = crc32(buffer)
    if buffer.size != size or actual != checksum:
        raise StateError(
            f"state file {storage.uri(name)} is corrupted: {buffer.size} bytes and checksum {actual:08x}, "
            f"expected {size} and {checksum:08x}; {RESTORE}"
        )
    return decode(pa.BufferReader(buffer), storage.uri(name))


def write_encoded(
    storage: Storage, name: str, segment: SortedRows, metadata: dict[str, str], compression: str | None
) -> tuple[int, int]:
    """Write a state file under a name of this attempt's own; returns its size and checksum.

    It is written as it is encoded: an encoded copy in memory took as long to allocate as all the rest.
    """
    with storage.output(name) as file:
        summed = SummedFile(file)
        encode(pa.PythonFile(summed, mode="w"), segment, metadata, compression)
    return summed.size, summed.crc32


def encode(
    sink: pa.NativeFile, segment: SortedRows, metadata: dict[str, str], compression: str | None
) -> None:
    columns = segment.columns
    batch = pa.RecordBatch.from_arrays(
        [pa.array(segment.hashes), *columns.columns], names=[HASH_COLUMN, *columns.schema.names]
    )
    schema = batch.schema.with_metadata({"spillway": str(FORMAT_VERSION), **metadata})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(batch)


def decode(source: pa.NativeFile, where: str) -> SortedRows:
    """Open an encoded segment; a memory-mapped, uncompressed source is not copied."""
    return decode_with_metadata(source, where)[0]


def decode_with_metadata(source: pa.NativeFile, where: str) -> tuple[SortedRows, dict[bytes, bytes]]:
    try:
        reader = pa.ipc.open_file(source)
        metadata = dict(reader.schema.metadata or {})
        version = metadata.get(b"spillway", b"").decode()
        if version != str(FORMAT_VERSION):
            raise StateError(
                f"state file {where} has format version {version or 'none'}, this Spillway reads "
                f"{FORMAT_VERSION}; use the version that wrote it"
            )
        batch = reader.get_batch(0)
    except pa.ArrowInvalid as error:
        raise StateError(f"state file {where} cannot be read: {error}; {RESTORE}") from error
    hashes = batch.column(0).to_numpy()
    columns = batch.remove_column(0) if batch.num_columns > 1 else rows_only(batch.num_rows)
    return SortedRows(np.asarray(hashes, dtype=np.int64), columns), metadata
