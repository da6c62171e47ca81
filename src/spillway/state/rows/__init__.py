"""Rows at rest: sorted by key hash, in runs, or pending.

Contract: a file is written once; rows of equal hash keep their age order through every merge.
Start with `sorted_rows`, then `run`; `compaction` decides what is merged when, `expiry` what windows let go,
`cursor` how far a clean-up has come, `xxhash` is Spark's hash of keys.
"""

from spillway.state.rows.compaction import CompactionLimits, choose_merges, superseded
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.expiry import NEVER, Expiry, expired_slices, lagging_groups, next_watermark, youngest
from spillway.state.rows.group import (
    GROUP_SQL,
    BoolArray,
    Int64Array,
    flags,
    folded,
    folded_sql,
    group_of,
    group_offsets,
    group_starts,
    groups_in,
    hash_in_group,
    hash_in_group_sql,
)
from spillway.state.rows.hash_filter import LEAST_NEEDLES, HashFilter, lower_half
from spillway.state.rows.pending import Pending, PendingReader, PendingWriter, group_counts, restricted_to
from spillway.state.rows.run import (
    EventTimes,
    Position,
    Run,
    decode_with_metadata,
    encode,
    in_order,
    map_run,
    read_run,
    write_run,
)
from spillway.state.rows.sorted_rows import SortedRows, concat, merge, open_bytes, rows_only, sort_rows, take
from spillway.state.rows.xxhash import xxhash64

__all__ = [
    "GROUP_SQL",
    "LEAST_NEEDLES",
    "NEVER",
    "BoolArray",
    "CompactionLimits",
    "Cursor",
    "EventTimes",
    "Expiry",
    "HashFilter",
    "Int64Array",
    "Pending",
    "PendingReader",
    "PendingWriter",
    "Position",
    "Run",
    "SortedRows",
    "choose_merges",
    "concat",
    "decode_with_metadata",
    "encode",
    "expired_slices",
    "flags",
    "folded",
    "folded_sql",
    "group_counts",
    "group_of",
    "group_offsets",
    "group_starts",
    "groups_in",
    "hash_in_group",
    "hash_in_group_sql",
    "in_order",
    "lagging_groups",
    "lower_half",
    "map_run",
    "merge",
    "next_watermark",
    "open_bytes",
    "read_run",
    "restricted_to",
    "rows_only",
    "sort_rows",
    "superseded",
    "take",
    "write_run",
    "xxhash64",
    "youngest",
]
