"""Values that every layer shares: groups as bit sets, windows, statistics, schemas, the view.

Contract: frozen values and pure functions of the standard library; nothing here opens a file or knows Arrow.
Start with `groups`; `view` is what users write.
"""

from spillway.model.byte_size import parse_bytes
from spillway.model.groups import GroupSet, all_groups, from_hex, group_set, members, placed_on, to_hex, union
from spillway.model.schema import Catalog, Column, nested_parts, normalise_type, parse_ddl
from spillway.model.statistic import Frame, Function, Statistic, kept_range_us, kept_rows
from spillway.model.view import JoinedTable, View
from spillway.model.window import Window

__all__ = [
    "Catalog",
    "Column",
    "Frame",
    "Function",
    "GroupSet",
    "JoinedTable",
    "Statistic",
    "View",
    "Window",
    "all_groups",
    "from_hex",
    "group_set",
    "kept_range_us",
    "kept_rows",
    "members",
    "nested_parts",
    "normalise_type",
    "parse_bytes",
    "parse_ddl",
    "placed_on",
    "to_hex",
    "union",
]
