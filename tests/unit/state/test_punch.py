"""Freed rows give their pages back; all other rows stay as they are."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spillway.model.group_set import all_groups, group_set
from spillway.state.group import cut, group_of
from spillway.state.memory_tier import MemoryTier
from spillway.state.run import Position, Run, write_run
from spillway.state.segment import Segment, sorted_segment
from spillway.state.storage import Storage

GROUPS = 8
MANY, FEW = 80_000, 2_000
"""Rows for which pages are punched out, and for which the image is written anew."""


def state_rows(rows: int) -> Segment:
    random = np.random.default_rng(5)
    hashes = random.integers(-(2**63), 2**63 - 1, rows)
    columns = pa.RecordBatch.from_pydict(
        {
            "id": pa.array(random.integers(0, 9, rows)),
            "flag": pa.array(random.integers(0, 2, rows).astype(bool)),
            "text": pa.array([f"row {number} " * 4 if number % 7 else None for number in range(rows)]),
            "amount": pa.array(random.integers(0, 999, rows)).cast(pa.decimal128(24, 2)),
            "nested": pa.array([[number] for number in range(rows)]),
        }
    )
    return sorted_segment(hashes, columns)


@pytest.mark.parametrize("dead", [[0], [7], [2, 3], [1, 4, 6]])
@pytest.mark.parametrize(("count", "share"), [(MANY, 0.5), (FEW, 0.7)])
def test_freed_groups_give_memory_back_and_the_others_are_untouched(
    tmp_path: Path, dead: list[int], count: int, share: float
) -> None:
    storage = Storage(str(tmp_path / "state"))
    tier = MemoryTier(str(tmp_path / "tier"), GROUPS)
    rows = state_rows(count)
    size, checksum = write_run(storage, "runs/one.run", rows, None)
    run = Run("runs/one.run", 0, Position(0), 0, count, size, checksum, all_groups(GROUPS))
    tier.store(run, rows, run.live)
    before = tier.resident_bytes()
    tier.free(group_set(dead))
    tier.settle()
    freed = tier.freed_bytes
    assert freed == before - tier.resident_bytes()
    assert freed > share * before * len(dead) / GROUPS
    left = run.live & ~group_set(dead)
    segments, loaded = tier.load(storage, run, left)
    assert loaded == 0
    keep = ~np.isin(group_of(rows.hashes, GROUPS), dead)
    (segment,) = (one.only_live(GROUPS) for one in segments)
    assert segment.hashes.tolist() == rows.hashes[keep].tolist()
    assert segment.columns.equals(rows.columns.filter(pa.array(keep)))


def test_a_freed_group_comes_back_from_the_durable_run(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "state"))
    tier = MemoryTier(str(tmp_path / "tier"), GROUPS)
    rows = state_rows(MANY)
    size, checksum = write_run(storage, "runs/one.run", rows, "lz4")
    run = Run("runs/one.run", 0, Position(0), 0, MANY, size, checksum, all_groups(GROUPS))
    tier.store(run, rows, run.live)
    tier.free(group_set([2]))
    segments, loaded = tier.load(storage, run, run.live)
    assert loaded == size
    total = sum(one.only_live(GROUPS).rows for one in segments)
    assert total == MANY
    start, stop = cut(rows.hashes, GROUPS)[2:4]
    back = next(one for one in segments if one.live is not None and one.live[2]).only_live(GROUPS)
    assert back.columns.equals(rows.columns.slice(start, stop - start))
