"""Files read without Spark: row groups become wire rows, equal value by value to those that Spark would send.

Contract: what is read here is on a positive list of types, expressions and file features, or it is left to
Spark. This front is what tasks load; the driver's part is in `native` (which inputs can be read here) and
`files` (which files, and in which splits). Start with `scan_input`, then `reading`.
"""

from spillway.scan.dealing import deal
from spillway.scan.partition_column import NULL_DIRECTORY, partition_value, path_partitions
from spillway.scan.reading import read
from spillway.scan.scan_input import (
    EventMicros,
    GroupCopies,
    ScanColumn,
    ScanInput,
    ScanKey,
    SlotSource,
    WireKey,
    WireKeyHash,
)
from spillway.scan.split import ARROW, PARQUET, Split

__all__ = [
    "ARROW",
    "NULL_DIRECTORY",
    "PARQUET",
    "EventMicros",
    "GroupCopies",
    "ScanColumn",
    "ScanInput",
    "ScanKey",
    "SlotSource",
    "Split",
    "WireKey",
    "WireKeyHash",
    "deal",
    "partition_value",
    "path_partitions",
    "read",
]
