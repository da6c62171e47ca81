"""Runs, pending files and memory images: what is written is read back, and damage is named."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import StateError
from spillway.model import from_text, to_text
from spillway.model.groups import all_groups, group_set
from spillway.state.memory.tier import MemoryTier
from spillway.state.rows.group import group_of, groups_in
from spillway.state.rows.pending import Pending, PendingReader, PendingWriter, group_counts
from spillway.state.rows.run import Position, Run, decode, read_run, write_run
from spillway.state.rows.sorted_rows import SortedRows, rows_only, sort_rows
from spillway.state.storage.storage import Storage

GROUPS = 8
HASHES = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40)


def segment(hashes: list[int]) -> SortedRows:
    numbers = pa.array(range(len(hashes)), pa.int64())
    batch = pa.RecordBatch.from_arrays([numbers, numbers.cast(pa.string())], names=["n", "s"])
    return sort_rows(np.array(hashes, dtype=np.int64), batch)


def spread(rows: int) -> SortedRows:
    """Rows evenly over all groups."""
    return segment([int(n * (2**64 // rows)) - 2**63 for n in range(rows)])


def stored(
    storage: Storage, rows: SortedRows, name: str = "runs/a-0.run", compression: str | None = None
) -> Run:
    size, checksum = write_run(storage, name, rows, compression)
    return Run(name, 0, Position(3), 3, rows.rows, size, checksum, groups_in(rows.hashes, GROUPS))


def same(left: SortedRows, right: SortedRows) -> bool:
    return bool((left.hashes == right.hashes).all()) and left.columns.equals(right.columns)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_run_is_read_back(tmp_path: Path, compression: str | None) -> None:
    storage = Storage(str(tmp_path))
    rows = spread(100)
    run = stored(storage, rows, compression=compression)
    assert same(read_run(storage, run), rows)
    assert from_text(Run, to_text(run)) == run == pickle.loads(pickle.dumps(run))


def test_a_run_of_an_input_that_keeps_only_its_key(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    rows = SortedRows(np.array([1, 2, 2], dtype=np.int64), rows_only(3))
    back = read_run(storage, stored(storage, rows))
    assert back.hashes.tolist() == [1, 2, 2]
    assert (back.columns.num_rows, back.columns.num_columns) == (3, 0)


@pytest.mark.parametrize("position", [0, 7, -9, -1])
def test_one_wrong_bit_anywhere_names_the_file(tmp_path: Path, position: int) -> None:
    storage = Storage(str(tmp_path))
    run = stored(storage, spread(10))
    content = bytearray((tmp_path / run.name).read_bytes())
    content[position] ^= 1
    (tmp_path / run.name).write_bytes(content)
    with pytest.raises(StateError, match=rf"state file {tmp_path}/{run.name} is corrupted: .*; restore it"):
        read_run(storage, run)


def test_a_run_that_does_not_fit_on_the_disk_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a-0.run").symlink_to("/dev/full")
    with pytest.raises(StateError, match=rf"cannot write {tmp_path}/runs/a-0.run: .*No space left"):
        stored(Storage(str(tmp_path)), spread(100_000))


def test_a_file_of_another_format_version_is_refused() -> None:
    schema = pa.schema([("h", pa.int64())], metadata={"spillway": "99"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([pa.array([1], pa.int64())], schema=schema))
    with pytest.raises(
        StateError, match=r"state file here has format version 99, this Spillway reads 1; use"
    ):
        decode(pa.BufferReader(sink.getvalue()), "here")
    with pytest.raises(StateError, match=r"state file there cannot be read: .*; restore"):
        decode(pa.BufferReader(sink.getvalue().slice(0, 100)), "there")


def test_the_memory_tier_loads_each_group_once(tmp_path: Path) -> None:
    """Half of the groups first, all of them later: only the missing half comes from disk, nothing twice."""
    storage, tier = Storage(str(tmp_path / "durable")), MemoryTier(str(tmp_path / "tier"), GROUPS)
    rows = spread(80)
    run = stored(storage, rows)
    half, everything = group_set(range(0, GROUPS, 2)), all_groups(GROUPS)
    first, read_bytes = tier.load(storage, run, half)
    assert read_bytes == run.bytes
    assert groups_in(np.sort(np.concatenate([part.hashes for part in first])), GROUPS) == half
    both, read_bytes = tier.load(storage, run, everything)
    assert read_bytes == run.bytes
    found = np.sort(np.concatenate([part.only_live(GROUPS).hashes for part in both]))
    assert found.tolist() == rows.hashes.tolist()
    (tmp_path / "durable" / run.name).unlink()
    again, read_bytes = tier.load(storage, run, everything)
    assert (sum(part.only_live(GROUPS).rows for part in again), read_bytes) == (80, 0)
    fewer, _ = tier.load(storage, run, half)
    owned = [half >> int(group) & 1 for group in group_of(rows.hashes, GROUPS)]
    assert sum(part.only_live(GROUPS).rows for part in fewer) == sum(owned)


def test_the_memory_tier_keeps_only_what_is_ordered(tmp_path: Path) -> None:
    storage, tier = Storage(str(tmp_path / "durable")), MemoryTier(str(tmp_path / "tier"), GROUPS)
    assert tier.resident_bytes() == 0
    kept, dropped = (stored(storage, spread(500), f"runs/{name}-0.run") for name in "ab")
    for run in (kept, dropped):
        tier.load(storage, run, run.live)
    (tmp_path / "tier" / "a-0.killed.writing").write_bytes(b"half")
    before = tier.resident_bytes()
    tier.keep_only([kept])
    assert [path.name.split(".")[0] for path in (tmp_path / "tier").iterdir()] == ["a-0"]
    assert 0 < tier.resident_bytes() < before


def test_names_that_begin_alike_are_different_runs(tmp_path: Path) -> None:
    storage, tier = Storage(str(tmp_path / "durable")), MemoryTier(str(tmp_path / "tier"), GROUPS)
    first, other = stored(storage, spread(4), "runs/a-1.run"), stored(storage, spread(6), "runs/a-11.run")
    tier.load(storage, other, other.live)
    segments, read_bytes = tier.load(storage, first, first.live)
    assert (sum(part.rows for part in segments), read_bytes) == (4, first.bytes)


@given(HASHES, st.integers(1, 7), st.lists(st.integers(0, GROUPS - 1), unique=True))
def test_pending_rows_are_consumed_once_by_each_owner(
    tmp_path_factory: pytest.TempPathFactory, hashes: list[int], limit: int, mine: list[int]
) -> None:
    """Two owners share a file by groups: together they read every row once, in the order of writing."""
    storage = Storage(str(tmp_path_factory.mktemp("pending")))
    writer = PendingWriter(storage, "pending/x", 2, GROUPS, 1 << 20)
    parts = [segment(hashes[:3]), segment(hashes[3:])] if len(hashes) > 3 else [segment(hashes)]
    for part in parts:
        writer.write(part)
    written = writer.close()
    order = [hash_ for part in parts for hash_ in part.hashes.tolist()]
    owners = (group_set(mine), all_groups(GROUPS) & ~group_set(mine))
    for groups in owners:
        owned = group_of(np.array(order, dtype=np.int64), GROUPS)
        wanted = [hash_ for hash_, group in zip(order, owned, strict=True) if groups >> int(group) & 1]
        got: list[int] = []
        for entry in written:
            left = from_text(Pending, to_text(entry.only(groups)))
            assert left.rows_left == len(wanted)
            while left.groups:
                assert left.input == 2
                looked_at, rows = PendingReader(storage, GROUPS).read(left, limit)
                assert 0 < rows.rows <= limit
                got += rows.hashes.tolist()
                left = left.after(looked_at, group_counts(rows, GROUPS))
                assert left.rows_left == len(wanted) - len(got)
                assert left.bytes_left == left.rows_left * entry.row_bytes
        assert got == wanted


def test_pending_files_are_of_bounded_size(tmp_path: Path) -> None:
    writer = PendingWriter(Storage(str(tmp_path)), "pending/x", 0, GROUPS, 2_000)
    for _ in range(20):
        writer.write(spread(20))
    written = writer.close()
    assert len(written) > 3
    assert sum(entry.rows for entry in written) == 400
    assert sorted(entry.name for entry in written) == Storage(str(tmp_path)).list("pending/")
    assert PendingWriter(Storage(str(tmp_path)), "pending/y", 0, 1, 2_000).close() == []


def test_a_reference_forgets_the_results_of_a_row_that_is_done_and_groups_that_have_no_row_left() -> None:
    entry = Pending("a", 0, 9, 1, 1, 90, 0b1101, (2, 1, 3), skip=2, emitted=9)
    left = entry.after(4, {0: 2, 3: 1})
    assert (left.groups, left.counts, left.skip, left.emitted) == (0b1100, (1, 2), 6, 0)
    assert (entry.rows_left, left.rows_left, left.bytes_left) == (6, 3, 30)
    assert entry.only(0b1010).group_rows == {3: 3}
