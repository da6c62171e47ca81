"""Values that every layer shares: groups as bit sets, windows, statistics, schemas, the view.

Contract: frozen values and pure functions of the standard library; nothing here opens a file or knows Arrow.
Start with `groups`; `codec` writes records as JSON; `view` is what users write.
"""

from spillway.model.byte_size import MINIMUM_BYTES, parse_bytes
from spillway.model.codec import WrittenAs, compact, from_json, from_text, listed, to_json, to_text
from spillway.model.groups import (
    GroupNumbers,
    GroupSet,
    all_groups,
    from_hex,
    group_set,
    members,
    placed_on,
    to_hex,
    union,
)
from spillway.model.schema import Catalog, Column, nested_parts, normalise_type, parse_ddl
from spillway.model.statistic import Frame, Function, Statistic, kept_range_us, kept_rows
from spillway.model.view import JoinedTable, View
from spillway.model.window import Window

__all__ = [
    "MINIMUM_BYTES",
    "Catalog",
    "Column",
    "Frame",
    "Function",
    "GroupNumbers",
    "GroupSet",
    "JoinedTable",
    "Statistic",
    "View",
    "Window",
    "WrittenAs",
    "all_groups",
    "compact",
    "from_hex",
    "from_json",
    "from_text",
    "group_set",
    "kept_range_us",
    "kept_rows",
    "listed",
    "members",
    "nested_parts",
    "normalise_type",
    "parse_bytes",
    "parse_ddl",
    "placed_on",
    "to_hex",
    "to_json",
    "to_text",
    "union",
]
