"""The driver's look at a file: what its footer says, whether tasks can read it as Spark does, and its splits.

Contract: only footers are read. A file that has anything outside the positive list is left to Spark, with the
reason; a file that nobody can read is refused by name. Start with `file_splits`.
"""

from spillway.scan.files.delta_log import DeltaFile, delta_additions, delta_id, delta_snapshot, delta_version
from spillway.scan.files.file_splitting import file_splits
from spillway.scan.files.pruning import Bounds, may_hold
from spillway.scan.files.shape import FileShape, GroupShape

__all__ = [
    "Bounds",
    "DeltaFile",
    "FileShape",
    "GroupShape",
    "delta_additions",
    "delta_id",
    "delta_snapshot",
    "delta_version",
    "file_splits",
    "may_hold",
]
