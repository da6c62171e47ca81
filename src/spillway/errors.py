"""Every error a user can cause or meet, each one line that says what, where, and what to do.

The command line prints the message of a `SpillwayError` alone and exits with a code that is not zero;
anything else that escapes is a bug and keeps its traceback.
"""

import os

from spillway.redaction import redacted

RESTORE = "restore it from a backup, or start with a new checkpoint directory and an empty sink"
"""What to do about a damaged file of a checkpoint."""

BUG = "this is a bug in Spillway; please report it with the details"
"""What to do about a state that no user can cause."""

_DISK_REMEDIES = {
    "No space left on device": "free some space there, then run the command again",
    "Disk quota exceeded": "free some space there or raise the quota, then run the command again",
    "Read-only file system": "mount it writable, or give another path",
    "Permission denied": "give this user access to it, or give another path",
    "Operation not permitted": "give this user access to it, or give another path",
    "File too large": "raise the limit of file sizes (ulimit -f), or give another path",
    "Too many open files": "raise the limit of open files (ulimit -n), then run the command again",
    "Input/output error": "check the disk, then run the command again",
}
"""What to do when the operating system refuses a file, by its words, which Java and Rust quote too."""


class SpillwayError(Exception):
    """The base of all errors that Spillway raises on purpose; none shows what must stay hidden."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(redacted(part) if isinstance(part, str) else part for part in arguments))


class ViewError(SpillwayError):
    """The view's text cannot be answered: unknown column, unsupported clause, no equi-join."""


class JobError(SpillwayError):
    """The job file is wrong: an unknown key, a bad value, a missing part."""


class SessionError(SpillwayError):
    """Spark cannot be started or does not fit: no Java, a bad master, executors missing."""


class EvaluationError(SpillwayError):
    """An expression of the view fails on a row: an overflow, a value that cannot be converted."""


class SourceError(SpillwayError):
    """An input cannot be read: missing path, schema that does not match, unknown format."""


class IncarnationError(SpillwayError):
    """A maintained view and a source do not fit: a table was recreated, or an older copy restored."""


class SinkError(SpillwayError):
    """Results cannot be written: a sink of another query, a type the format has no room for."""


class StateError(SpillwayError):
    """A state file is missing, truncated or corrupted."""


class CheckpointError(SpillwayError):
    """A checkpoint cannot be used: another view, another version, another driver, not writable."""


class BudgetError(SpillwayError):
    """The memory budget is smaller than what one step needs."""


class ComputeError(SpillwayError):
    """A view could not be computed: Spark failed, or the computation was cancelled."""


def disk_reason(text: str) -> str | None:
    """What the operating system said about a disk, and what to do; None if `text` does not quote it."""
    for words, remedy in _DISK_REMEDIES.items():
        if words in text:
            return f"{words}; {remedy}"
    return None


def file_reason(error: BaseException, otherwise: str = "") -> str:
    """Why a file could not be read or written, and what to do; `otherwise` where that is not known."""
    number = getattr(error, "errno", None)
    told = str(error) or type(error).__name__
    system = os.strerror(number) if isinstance(number, int) else ""
    known = disk_reason(system or told)
    if known is not None:
        return known
    text = " ".join((system or told).split())
    return f"{text}; {otherwise}" if otherwise else text
