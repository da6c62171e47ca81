"""Rows at rest: sorted by key hash, in runs, or pending.

Contract: a file is written once; rows of equal hash keep their age order through every merge.
Start with `segment`, then `run`; `compaction` decides what is merged when, `expiry` what windows let go.
"""

from spillway.state.rows.compaction import CompactionLimits, choose_merges, superseded
from spillway.state.rows.expiry import NEVER, Expiry, advanced, expired_slices, lagging_groups, youngest
from spillway.state.rows.group import (
    GROUP_SQL,
    BoolArray,
    Int64Array,
    cut,
    flags,
    folded,
    folded_sql,
    group_of,
    group_starts,
    hash_in_group,
    hash_in_group_sql,
    present,
)
from spillway.state.rows.pending import Pending, PendingWriter, group_counts, read_pending, restricted_to
from spillway.state.rows.run import (
    EventTimes,
    Position,
    Run,
    decode_with_metadata,
    in_order,
    map_run,
    read_run,
    write_run,
    write_segment,
)
from spillway.state.rows.segment import Segment, concat, merge, rows_only, sorted_segment, take

__all__ = [
    "GROUP_SQL",
    "NEVER",
    "BoolArray",
    "CompactionLimits",
    "EventTimes",
    "Expiry",
    "Int64Array",
    "Pending",
    "PendingWriter",
    "Position",
    "Run",
    "Segment",
    "advanced",
    "choose_merges",
    "concat",
    "cut",
    "decode_with_metadata",
    "expired_slices",
    "flags",
    "folded",
    "folded_sql",
    "group_counts",
    "group_of",
    "group_starts",
    "hash_in_group",
    "hash_in_group_sql",
    "in_order",
    "lagging_groups",
    "map_run",
    "merge",
    "present",
    "read_pending",
    "read_run",
    "restricted_to",
    "rows_only",
    "sorted_segment",
    "superseded",
    "take",
    "write_run",
    "write_segment",
    "youngest",
]
