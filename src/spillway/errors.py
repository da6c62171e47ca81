"""Every error a user can cause or meet, each one line that says what, where, and what to do.

The command line prints the message of a `SpillwayError` alone and exits with a code that is not zero;
anything else that escapes is a bug and keeps its traceback.
"""

from spillway.redaction import redacted


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
