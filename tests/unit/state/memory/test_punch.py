"""Freed rows give their pages back, whatever their types, as the operating system counts; others stay."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spillway.model.groups import all_groups, group_set
from spillway.state.memory.punch import PAGE_BYTES, holes_of
from spillway.state.memory.tier import LEFT_SHARE, MemoryTier
from spillway.state.rows.group import group_of, group_offsets
from spillway.state.rows.run import Position, Run, decode, encode, write_run
from spillway.state.rows.sorted_rows import SortedRows, sort_rows
from spillway.state.storage.storage import Storage, mapped_file

GROUPS = 8
MANY, FEW = 40_000, 2_000
"""Rows for which pages are punched out, and for which the image is written anew."""
INSTANT = pa.timestamp("us", "UTC")
TYPES = [
    pa.null(),
    pa.bool_(),
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.time64("ns"),
    pa.timestamp("us"),
    INSTANT,
    pa.duration("us"),
    pa.month_day_nano_interval(),
    pa.decimal128(38, 9),
    pa.decimal256(60, 2),
    pa.binary(24),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.list_(pa.int64()),
    pa.list_(pa.int64(), 3),
    pa.large_list(pa.large_string()),
    pa.map_(pa.string(), pa.decimal128(38, 9)),
    pa.struct([("flag", pa.bool_()), ("text", pa.string()), ("amount", pa.decimal128(20, 2))]),
    pa.list_(pa.struct([("at", INSTANT), ("tags", pa.map_(pa.string(), pa.list_(pa.float64())))])),
]


def value(kind: pa.DataType, number: int) -> Any:
    """The value of this number, null now and then."""
    if pa.types.is_null(kind) or number % 11 == 3:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value(field.type, number + 1) for field in kind}
    if pa.types.is_map(kind):
        return [(f"key {n}", value(kind.item_type, number + n)) for n in range(number % 4)]
    if pa.types.is_fixed_size_list(kind):
        return [value(kind.value_type, number + n) for n in range(kind.list_size)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return [value(kind.value_type, number + n) for n in range(number % 5)]
    if pa.types.is_dictionary(kind):
        return value(kind.value_type, number % 7)
    if pa.types.is_decimal(kind):
        return Decimal(number) / 4
    if pa.types.is_fixed_size_binary(kind):
        return b"%024d" % number
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "x" * (number % 60)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return b"y" * (number % 60)
    if pa.types.is_interval(kind):
        return pa.MonthDayNano([number, 2, 3])
    return bool(number % 2) if pa.types.is_boolean(kind) else number % 100


def state_rows(kinds: Sequence[pa.DataType], rows: int) -> SortedRows:
    """Rows of random hashes with one column of each type."""
    random = np.random.default_rng(5)
    hashes = random.integers(-(2**63), 2**63 - 1, rows)
    columns = {}
    for number, kind in enumerate(kinds):
        pool = pa.array([value(kind, number) for number in range(200)], kind)
        columns[f"c{number}"] = pool.take(pa.array(random.integers(0, len(pool), rows)))
    return sort_rows(hashes, pa.RecordBatch.from_pydict(columns))


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_gives_its_pages_back(quick_directory: Callable[[], Path], kind: pa.DataType) -> None:
    rows = state_rows([kind], 4 * MANY)
    path = quick_directory() / "image"
    with pa.OSFile(str(path), "wb") as sink:
        encode(sink, rows, {}, None)
    mapped = mapped_file(str(path))
    image = decode(pa.BufferReader(mapped), str(path))
    ranges = [(1_003, 9_001), (50_000, 149_999)]
    dead = [image.columns.column(0).slice(start, stop - start) for start, stop in ranges]
    buffers = len(image.columns.column(0).buffers())
    holes = holes_of(mapped.address, image.columns, ranges)
    before = blocks(path)
    holes.punch(str(path))
    assert before - blocks(path) == holes.bytes
    assert holes.bytes >= sum(part.nbytes for part in dead) - 2 * PAGE_BYTES * buffers * len(ranges)
    assert holes.bytes > 0 or pa.types.is_null(kind)
    for start, stop in [(0, 1_003), (9_001, 50_000), (149_999, 4 * MANY)]:
        left = image.columns.column(0).slice(start, stop - start)
        assert left.equals(rows.columns.column(0).slice(start, stop - start))


@pytest.mark.parametrize("dead", [[0], [7], [2, 3], [1, 4, 6]])
@pytest.mark.parametrize(
    "kinds", [TYPES, [pa.decimal128(24, 2)], [pa.list_view(pa.int64())]], ids=["all", "decimal", "view"]
)
@pytest.mark.parametrize("count", [MANY, FEW])
def test_freed_groups_give_memory_back_and_the_others_are_untouched(
    quick_directory: Callable[[], Path], kinds: list[pa.DataType], dead: list[int], count: int
) -> None:
    storage = Storage(str(quick_directory()))
    tier = MemoryTier(str(quick_directory()), GROUPS)
    rows = state_rows(kinds, count)
    size, checksum = write_run(storage, "runs/one.run", rows, None)
    run = Run("runs/one.run", 0, Position(0), 0, count, size, checksum, all_groups(GROUPS))
    tier.store(run, rows, run.live)
    before = tier.resident_bytes()
    tier.free(group_set(dead))
    tier.settle()
    freed = tier.freed_bytes
    assert freed == before - tier.resident_bytes()
    lost = np.isin(group_of(rows.hashes, GROUPS), dead)
    assert freed >= (1 - LEFT_SHARE) * rows.nbytes * lost.mean() - 2 * PAGE_BYTES
    left = run.live & ~group_set(dead)
    segments, loaded = tier.load(storage, run, left)
    assert loaded == 0
    (segment,) = (loaded.only_live(GROUPS) for loaded in segments)
    assert segment.hashes.tolist() == rows.hashes[~lost].tolist()
    assert segment.columns.equals(rows.columns.filter(pa.array(~lost)))


def test_what_spills_leave_behind_does_not_add_up(quick_directory: Callable[[], Path]) -> None:
    """Group by group, from several images: rows that left never take more than a share of one spill."""
    tier = MemoryTier(str(quick_directory()), GROUPS)
    stored = []
    for number, kinds in enumerate([[pa.int64()], [pa.decimal128(24, 2), pa.string()], [pa.bool_()]]):
        rows = state_rows(kinds, MANY // 2)
        run = Run(f"runs/{number}.run", 0, Position(0), 0, rows.rows, 1, 1, all_groups(GROUPS))
        tier.store(run, rows, run.live)
        stored.append(rows)
    for dead in range(GROUPS - 1):
        tier.open()
        tier.free(group_set([dead]))
        tier.settle()
        live = sum(
            rows.nbytes * (rows.rows - group_offsets(rows.hashes, GROUPS)[dead + 1]) / rows.rows
            for rows in stored
        )
        spilled = sum(rows.nbytes / GROUPS for rows in stored)
        assert tier.resident_bytes() - live <= LEFT_SHARE * 1.2 * spilled + 4 * PAGE_BYTES * len(stored)


def test_a_freed_group_comes_back_from_the_durable_run(quick_directory: Callable[[], Path]) -> None:
    storage = Storage(str(quick_directory()))
    tier = MemoryTier(str(quick_directory()), GROUPS)
    rows = state_rows(TYPES, MANY)
    size, checksum = write_run(storage, "runs/one.run", rows, "lz4")
    run = Run("runs/one.run", 0, Position(0), 0, MANY, size, checksum, all_groups(GROUPS))
    tier.store(run, rows, run.live)
    tier.free(group_set([2]))
    segments, loaded = tier.load(storage, run, run.live)
    assert loaded == size
    total = sum(part.only_live(GROUPS).rows for part in segments)
    assert total == MANY
    start, stop = group_offsets(rows.hashes, GROUPS)[2:4]
    back = next(part for part in segments if part.live is not None and part.live[2]).only_live(GROUPS)
    assert back.columns.equals(rows.columns.slice(start, stop - start))
