"""The journal of a run: one line per epoch, written beside the checkpoint, read by reports and figures.

Contract: for people only; no answer depends on it. Start with `entry`: what a line has. `epoch` makes one,
`file` writes and reads them.
"""

from spillway.manager.journal.entry import PHASES, EpochEntry, EpochKind, EpochSeconds
from spillway.manager.journal.epoch import epoch_entry
from spillway.manager.journal.file import FILE_NAME, Journal, read_journal

__all__ = [
    "FILE_NAME",
    "PHASES",
    "EpochEntry",
    "EpochKind",
    "EpochSeconds",
    "Journal",
    "epoch_entry",
    "read_journal",
]
