"""The rows of a workload's stream: row i is a pure, vectorised function of (parameters, seed, stream, i).

Three steps, each a bijection, so counts are exact and a replay needs no history. Arrivals come in shuffled
blocks that give every partition its share: row -> (partition, ordinal in the partition). A partition's
ordinals fall into ranges, shuffled inside: ordinal -> slot. Consecutive slots take the partition's values in
turn: slot -> value. A key stands for a (partition, value); see `group_key` for the default kind of key. In
all streams the same pair has the same key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spillway.errors import SourceError
from spillway.workload.group_key import group_keys
from spillway.workload.payload import payload
from spillway.workload.permutation import Words, combine, permute, stream_key
from spillway.workload.workload import Workload

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64()),
        pa.field("id", pa.int64()),
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("p", pa.string()),
    ]
)

_ARRIVAL, _ORDER, _PAYLOAD = (np.array([tag], dtype=np.uint64) for tag in (1, 2, 3))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNT_SLICE_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class _Layout:
    """Tuple range and number of values, by partition."""

    tuple_range: Words
    values: Words


def rows(workload: Workload, stream: str, lo: int, hi: int) -> pa.RecordBatch:
    """Rows [lo, hi) of a stream."""
    index = _indices(workload, stream, lo, hi)
    elapsed_us = np.rint(index * (1e6 / workload.rate_rows_per_second)).astype(np.int64)
    start_us = round((workload.start - _EPOCH).total_seconds() * 1e6)
    text_key = combine(stream_key(workload.seed, stream), _PAYLOAD, index)
    columns = [
        pa.array(_keys(workload, stream, index)),
        pa.array(index.astype(np.int64)),
        pa.array(elapsed_us + start_us).cast(SCHEMA.field("ts").type),
        payload(text_key, workload.width_bytes),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def keys(workload: Workload, stream: str, lo: int, hi: int) -> NDArray[np.int64]:
    """The join keys alone of rows [lo, hi)."""
    return _keys(workload, stream, _indices(workload, stream, lo, hi))


def partition_values(workload: Workload, stream: str, lo: int, hi: int) -> tuple[Words, Words]:
    """What the keys of rows [lo, hi) stand for: the partition, and which of its values."""
    return _partition_values(workload, stream, _indices(workload, stream, lo, hi))


def count_results(workload: Workload, row_count: int, streams: Sequence[str] | None = None) -> int:
    """The exact number of results of joining the first `row_count` rows of each stream on `k`."""
    totals: NDArray[np.object_] | None = None
    layout = _layout(workload)
    domain = int(layout.values.max()) * workload.partitions
    for stream in workload.streams if streams is None else streams:
        counts = np.zeros(domain, dtype=np.int64)
        for lo in range(0, row_count, _COUNT_SLICE_ROWS):
            partition, value = partition_values(workload, stream, lo, min(lo + _COUNT_SLICE_ROWS, row_count))
            pair = value * np.uint64(workload.partitions) + partition
            counts += np.bincount(pair.astype(np.int64), minlength=domain)
        exact = counts.astype(object)
        totals = exact if totals is None else totals * exact
    return 0 if totals is None else int(totals.sum())


def _indices(workload: Workload, stream: str, lo: int, hi: int) -> Words:
    if stream not in workload.streams:
        raise SourceError(f"workload: no stream {stream!r}; use one of {', '.join(workload.streams)}")
    if not 0 <= lo <= hi:
        raise SourceError(f"workload: rows [{lo}, {hi}) of stream {stream!r}: use 0 <= lo <= hi")
    return np.arange(lo, hi, dtype=np.uint64)


def _keys(workload: Workload, stream: str, index: Words) -> NDArray[np.int64]:
    partition, value = _partition_values(workload, stream, index)
    if workload.plain_keys:
        return (value * np.uint64(workload.partitions) + partition).astype(np.int64)
    return group_keys(partition, value, workload.partitions)


def _partition_values(workload: Workload, stream: str, index: Words) -> tuple[Words, Words]:
    key = stream_key(workload.seed, stream)
    partition, ordinal = _arrivals(workload, key, index)
    layout = _layout(workload)
    partitions = np.uint64(workload.partitions)
    tuple_range = layout.tuple_range[partition]
    unit = np.uint64(1)
    # Range r of a partition holds ordinals [r*K/partitions, (r+1)*K/partitions), both rounded down.
    number = ((ordinal + unit) * partitions - unit) // tuple_range
    first = number * tuple_range // partitions
    size = (number + unit) * tuple_range // partitions - first
    slot = first + permute(ordinal - first, size, combine(key, _ORDER, partition, number))
    return partition, slot % layout.values[partition]


def _arrivals(workload: Workload, key: Words, index: Words) -> tuple[Words, Words]:
    """Partition of each row, and how many rows of its stream that partition had before (in block order)."""
    block_rows = np.array([workload.block_rows], dtype=np.uint64)
    block, position = index // block_rows, index % block_rows
    position = permute(position, block_rows, combine(key, _ARRIVAL, block))
    if workload.alternation is None:
        return position, block
    half = np.uint64(workload.partitions // 2)
    factor = np.uint64(workload.alternation.factor)
    extra = np.uint64(workload.alternation.factor - 1)
    favoured_half, blocks_lower_favoured = _favour(workload, block)
    is_favoured = position < half * factor
    side = favoured_half ^ (~is_favoured).astype(np.uint64)
    partition = position % half + side * half
    copy: Words = np.where(is_favoured, position // half, np.uint64(0))
    favoured_blocks: Words = np.where(side == 0, blocks_lower_favoured, block - blocks_lower_favoured)
    return partition, block + favoured_blocks * extra + copy


def _favour(workload: Workload, block: Words) -> tuple[Words, Words]:
    """The half that each block favours, and how many blocks before it favoured the lower half."""
    first_blocks, period_blocks = (np.uint64(n) for n in workload.alternation_blocks())
    in_first = block < first_blocks
    later = np.where(in_first, np.uint64(0), block - first_blocks)
    full, rest = later // period_blocks, later % period_blocks
    upper_now = np.uint64(1) - full % np.uint64(2)  # the first later period favours the upper half
    lower_before = first_blocks + full // np.uint64(2) * period_blocks + (np.uint64(1) - upper_now) * rest
    return np.where(in_first, np.uint64(0), upper_now), np.where(in_first, block, lower_before)


def _layout(workload: Workload) -> _Layout:
    tuple_ranges: list[int] = []
    values: list[int] = []
    bounds = workload.class_bounds()
    for each, (lo, hi) in zip(workload.classes, pairwise(bounds), strict=True):
        tuple_range = each.tuple_range or workload.tuple_range
        per_partition = tuple_range / (workload.partitions * each.join_ratio)
        # Where that is not whole, neighbours differ by one, so that the class as a whole has its ratio.
        ends = [round(number * per_partition) for number in range(hi - lo + 1)]
        tuple_ranges.extend([tuple_range] * (hi - lo))
        values.extend(max(1, b - a) for a, b in pairwise(ends))
    return _Layout(np.array(tuple_ranges, dtype=np.uint64), np.array(values, dtype=np.uint64))
