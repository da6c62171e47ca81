"""What a tier knows of its directory without reading it again, against a tier that reads it afresh."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spillway.state.memory import MemoryTier
from spillway.state.rows.group import flags, group_of
from spillway.state.rows.run import Position, Run, write_run
from spillway.state.rows.sorted_rows import SortedRows, rows_only, sort_rows
from spillway.state.storage import Storage

GROUPS = 8
ALL = 2**GROUPS - 1
ROWS = 4_000


def rows_of(seed: int) -> SortedRows:
    hashes = np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, ROWS)
    return sort_rows(hashes, pa.RecordBatch.from_pydict({"id": np.arange(ROWS)}))


def run_of(number: int, live: int = ALL) -> Run:
    return Run(f"runs/r{number}.run", 0, Position(number), number, ROWS, 1, 1, live)


def check(tier: MemoryTier) -> None:
    afresh = MemoryTier(tier.directory, GROUPS)
    assert sorted(tier._images()) == sorted(afresh._images())
    assert tier.resident_bytes() == afresh.resident_bytes()


def test_the_directory_is_known_after_each_step(tmp_path: Path) -> None:
    tier = MemoryTier(str(tmp_path / "tier"), GROUPS)
    runs = [run_of(number) for number in range(6)]
    check(tier)
    for run in runs[:5]:
        tier.store(run, rows_of(run.last_epoch), ALL)
        check(tier)
    tier.discard(runs[0])
    check(tier)
    tier.keep_only(runs[2:])
    check(tier)
    tier.open()
    tier.free(0b1)  # a part of each image
    tier.settle()
    check(tier)
    tier.free(ALL & ~0b11)  # nearly all: images are rewritten
    tier.settle()
    check(tier)
    tier.store(runs[5], rows_of(5), 0b11)
    check(tier)
    tier.free(0b10)  # images that have no other group go
    tier.settle()
    check(tier)
    tier.discard(runs[5])
    check(tier)


def test_a_loaded_run_is_found_again(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    size, checksum = write_run(storage, "runs/r0.run", rows_of(0), None)
    run = Run("runs/r0.run", 0, Position(0), 0, ROWS, size, checksum, ALL)
    tier = MemoryTier(str(tmp_path / "tier"), GROUPS)
    tier.open()
    for wanted, read in ((0b1, size), (0b1, 0), (0b110, size), (0b111, 0)):
        segments, read_bytes = tier.load(storage, run, wanted)
        assert read_bytes == read
        found = sorted(value for segment in segments for value in segment.only_live(GROUPS).hashes.tolist())
        hashes = rows_of(0).hashes
        assert found == hashes[flags(wanted, GROUPS)[group_of(hashes, GROUPS)]].tolist()
        check(tier)


@pytest.mark.parametrize("columns", [lambda rows: rows.columns, lambda rows: rows_only(rows.rows)])
def test_an_image_has_a_filter_of_its_hashes(
    tmp_path: Path, columns: Callable[[SortedRows], pa.RecordBatch]
) -> None:
    rows = rows_of(0)
    tier = MemoryTier(str(tmp_path / "tier"), GROUPS)
    stored = tier.store(run_of(0), SortedRows(rows.hashes, columns(rows)), ALL)
    assert stored.filter is not None
    assert len(stored.filter.candidates(rows.hashes & 0xFFFFFFFF)) == ROWS
    assert len(stored.filter.candidates(rows_of(1).hashes & 0xFFFFFFFF)) < ROWS / 5
    assert stored.columns.num_columns == columns(rows).num_columns
    assert stored.columns.num_rows == ROWS
    assert (stored.hashes == rows.hashes).all()
