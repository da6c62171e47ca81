"""The journal of a run: one line per epoch, written beside the checkpoint, read by reports and figures.

Contract: for people only; no answer depends on it. Start with `file`.
"""

from spillway.manager.journal.entry import epoch_entry
from spillway.manager.journal.epoch import PHASES, Epoch, read_epochs
from spillway.manager.journal.file import FILE_NAME, Journal, read_journal

__all__ = ["FILE_NAME", "PHASES", "Epoch", "Journal", "epoch_entry", "read_epochs", "read_journal"]
