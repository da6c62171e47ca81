"""From what Spark throws to the one line that the user needs.

An error raised in a Python worker or inside a batch reaches the driver wrapped in stack traces of two
languages. If a `SpillwayError` is inside, that is what happened; otherwise the first telling line is.
"""

import re

from spillway import errors
from spillway.errors import SourceError, SpillwayError

_OURS = re.compile(r"spillway\.errors\.(\w+): (.*)")
_CAUSE = re.compile(
    r"^(?:Caused by: |py4j\.protocol\.\w+: |: )?[\w.$]*(?:Error|Exception): (.+)$", re.MULTILINE
)

_CONDITION = re.compile(r"\[(?!PYTHON_EXCEPTION|STREAM_FAILED|FOREACH_)[A-Z0-9_.]+\] ")
"""Spark names what went wrong, and with it the file or column; these three only say where it surfaced."""

_FILE = re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+?)\.? ")
_MALFORMED, _HEADER = "[MALFORMED_RECORD_IN_PARSING", "CSV header does not conform to the schema"
_RECORD = re.compile(r"record parsing: (.*?)\.?$", re.MULTILINE)
_BARRIER_FAILED = "Could not recover from a failed barrier ResultStage"


def as_spillway_error(error: BaseException) -> SpillwayError | None:
    """The Spillway error that `error` is or carries, or None when it is none of ours."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, SpillwayError):
            return seen
        seen = seen.__cause__ or seen.__context__
    match = _OURS.search(str(error))
    if match is None:
        return _bad_file(str(error))
    kind = getattr(errors, match[1], SpillwayError)
    return kind(match[2]) if isinstance(kind, type) and issubclass(kind, SpillwayError) else None


def _bad_file(text: str) -> SourceError | None:
    """A file of a text format that does not fit its schema; nothing of its batch was committed."""
    file = _FILE.search(text)
    if file is None:
        return None
    if _MALFORMED in text:
        record = _RECORD.search(text)
        found = f": {record[1]}" if record else ""
        return SourceError(
            f"file {file[1]} has a record that does not fit the schema{found}; correct it and run the job "
            'again, or say options = { mode = "PERMISSIVE" } (null for what does not parse) or '
            '"DROPMALFORMED", and such records are counted'
        )
    if _HEADER in text:
        return SourceError(
            f"file {file[1]} has a header that differs from the schema; correct one of them, or say "
            'options = { enforceSchema = "true" } to go by the position of columns'
        )
    return None


def has_lost_a_task(error: BaseException) -> bool:
    """Whether a stage failed whose tasks Spark never repeats, and not by an error of ours.

    Spark repeats any task that ended with its worker or executor, except those of a barrier stage.
    """
    return _BARRIER_FAILED in str(error) and as_spillway_error(error) is None


def first_cause(error: BaseException) -> str:
    """The telling message of a wrapped error, on one line: Spark's own name for it, else the innermost."""
    text = str(error)
    causes = _CAUSE.findall(text)
    named = [cause for cause in causes if _CONDITION.match(cause)]
    if named or causes:
        return str((named or causes)[-1]).strip()
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
