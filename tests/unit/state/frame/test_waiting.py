"""Rows that wait for the watermark: what the manifest knows of them, and which runs are swept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spillway.manager.pending_queue import input_watermark
from spillway.model import from_text, to_text
from spillway.state.frame.final_rows import FinalRows
from spillway.state.log.manifest import Manifest
from spillway.state.rows.compaction import CompactionLimits, superseded
from spillway.state.rows.group import group_starts
from spillway.state.rows.pending import Pending, PendingReader, PendingWriter
from spillway.state.rows.run import EventTimes, Position, Run
from spillway.state.rows.sorted_rows import SortedRows
from spillway.state.storage.storage import Storage

ENTRY = Pending("p", 0, 3, 100, 7, 60, 0b11, (1, 2), earliest=50)


@pytest.mark.parametrize("entry", [ENTRY, replace(ENTRY, earliest=None), replace(ENTRY, earliest=-5)])
def test_a_reference_comes_back_as_it_was(entry: Pending) -> None:
    assert from_text(Pending, to_text(entry)) == entry


def test_rows_wait_until_the_watermark_has_passed_them() -> None:
    assert [ENTRY.has_final(watermark) for watermark in (None, 49, 50, 51)] == [False, False, False, True]
    assert replace(ENTRY, earliest=None).has_final(None)
    manifest = Manifest(0, 0, (0, 0), pending={0: (ENTRY,)}, watermark=50)
    assert manifest.waiting_groups == 0
    assert replace(manifest, watermark=51).waiting_groups == 0b11


def test_nothing_expires_that_a_waiting_row_may_reach() -> None:
    late = replace(ENTRY, earliest=20, groups=0b100, counts=(3,))
    manifest = Manifest(0, 0, (0, 0, 0), pending={0: (ENTRY, late)}, watermark=60)
    assert input_watermark(manifest, 0) == 20
    assert input_watermark(manifest, 0b100) == 50
    assert input_watermark(replace(manifest, pending={}), 0) == 60
    assert input_watermark(replace(manifest, watermark=None), 0) is None


def run(name: str, epoch: int, size: int, earliest: int, swept: int) -> Run:
    times = EventTimes(earliest, earliest + 5, swept)
    return Run(name, 0, Position(epoch), epoch, 1, size, 0, 1, times=times)


def test_a_run_is_swept_when_as_much_came_after_its_last_sweep() -> None:
    runs = [run("a", 0, 100, 0, 15), run("b", 1, 60, 5, 20), run("c", 2, 60, 30, 30), run("d", 3, 30, 40, 40)]
    limits = CompactionLimits(max_bytes=200)
    assert superseded(runs, limits) == (("b",),)
    assert superseded([*runs, run("e", 4, 10, 50, 50)], limits) == (("a",),)
    assert superseded(runs[:2], limits) == ()
    assert superseded(runs, CompactionLimits(max_bytes=50)) == ()
    assert superseded(runs, CompactionLimits(max_bytes=300)) == (("b", "c", "d"),)
    assert superseded(runs, CompactionLimits(max_bytes=300), [("c",)]) == (("b",),)  # d is no neighbour of b
    assert superseded(runs, CompactionLimits(max_bytes=300), [("b",)]) == ()


def rows(groups: list[int], times: list[int]) -> SortedRows:
    hashes = group_starts(4)[np.array(groups, dtype=np.int64)]
    return SortedRows(hashes, pa.RecordBatch.from_arrays([pa.array(times, pa.int64())], names=["ts"]))


def test_beyond_the_room_of_a_round_whole_groups_are_parked(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    others = PendingWriter(storage, "pending/x", 0, 4, 1 << 20, time=0)
    final = FinalRows(4, 3, 1 << 40, others)
    final.add(rows([3, 1, 1], [9, 1, 2]))
    final.add(rows([1, 2, 3], [3, 4, 5]))
    final.add(rows([1, 0], [6, 7]))
    taken = final.gathered()
    assert taken is not None
    assert taken.columns.column(0).to_pylist() == [7]
    (parked,) = others.close()
    assert parked.earliest == 1
    _, waiting = PendingReader(storage, 4).read(parked, parked.rows)
    assert sorted(waiting.columns.column(0).to_pylist()) == [1, 2, 3, 4, 5, 6, 9]
