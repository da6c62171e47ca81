"""From what Spark throws to the one line that the user needs.

An error raised in a Python worker or inside a batch reaches the driver wrapped in stack traces of two
languages. If a `SpillwayError` is inside, that is what happened. Otherwise Spark's text may name a file that
cannot be read, an expression that fails on a row, or a disk that is full; else the first telling line is all.
"""

import re
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spillway import errors
from spillway.errors import (
    RESTORE,
    CheckpointError,
    EvaluationError,
    SessionError,
    SourceError,
    SpillwayError,
    StateError,
    disk_reason,
)

_OURS = re.compile(r"spillway\.errors\.(\w+): (.*)")
_CAUSE = re.compile(
    r"^(?:Caused by: |py4j\.protocol\.\w+: |: )?[\w.$]*(?:Error|Exception): (.+)$", re.MULTILINE
)

_CONDITION = re.compile(r"\[(?!PYTHON_EXCEPTION|STREAM_FAILED|FOREACH_)[A-Z0-9_.]+\] ")
"""Spark names what went wrong, and with it the file or column; these three only say where it surfaced."""
_CLUTTER = re.compile(
    r"\[STREAM_FAILED\] Query \[id = \S+, runId = \S+\] terminated with exception: |"
    r' If necessary set \S+ to "false" to bypass this error\.| SQLSTATE: \w+'
)
"""What says nothing to the reader of one line."""

_FILE = re.compile(
    r"\[FAILED_READ_FILE(?P<kind>[.\w]*)\] Encountered error while reading file (?P<file>\S+?)\.? "
)
_JAVA_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_MALFORMED, _HEADER = "[MALFORMED_RECORD_IN_PARSING", "CSV header does not conform to the schema"
_RECORD = re.compile(r"record parsing: (.*?)\.?$", re.MULTILINE)
_EXPRESSION = re.compile(
    r"\[[A-Z0-9_.]+\] (?P<why>[^\n]+)\n== SQL \([^)\n]*\) ==\n(?P<sql>.+?)\n\^", re.DOTALL
)
_BAD_VALUE = re.compile(r"\[[A-Z0-9_.]+\] (?P<why>[^\n]+) SQLSTATE: 22\w{3}\b")
"""For casts that overflow, Spark does not quote the expression."""
_LOG_FILE = re.compile(r"Failed to read log file (\S+?)\. ")
_LOG_PLACE = re.compile(r"checkpointLocation=([^,\]]+)")
_LOG_CLASSES = ("HDFSMetadataLog", "CheckpointFileManager", "StreamMetadata")
_SCRATCH_CLASSES = ("DiskBlock", "blockmgr-", "shuffle", "UnsafeSorter", "DiskStore")


def as_spillway_error(error: BaseException) -> SpillwayError | None:
    """The Spillway error that `error` is or carries, or None when it is none of ours."""
    seen: BaseException | None = error
    texts = []
    while seen is not None:
        if isinstance(seen, SpillwayError):
            return seen
        texts.append(str(seen))
        seen = seen.__cause__ or seen.__context__
    text = "\n".join(texts)  # stack traces of Java are in the text of the cause
    match = _OURS.search(text)
    if match is not None:
        kind = getattr(errors, match[1], SpillwayError)
        return kind(match[2]) if isinstance(kind, type) and issubclass(kind, SpillwayError) else None
    return _bad_file(text) or _bad_log(text) or _bad_expression(text) or _bad_disk(text)


def _bad_file(text: str) -> SourceError | None:
    """A file that is damaged or does not fit its schema; nothing of its batch was committed."""
    found = _FILE.search(text)
    if found is None:
        return None
    file = _plain(found["file"])
    if _MALFORMED in text:
        record = _RECORD.search(text)
        shown = f": {record[1]}" if record else ""
        return SourceError(
            f"file {file} has a record that does not fit the schema{shown}; correct it and run the job "
            'again, or say options = { mode = "PERMISSIVE" } (null for what does not parse) or '
            '"DROPMALFORMED", and such records are counted'
        )
    if _HEADER in text:
        return SourceError(
            f"file {file} has a header that differs from the schema; correct one of them, or say "
            'options = { enforceSchema = "true" } to go by the position of columns'
        )
    if found["kind"] == ".FILE_NOT_EXIST":
        return SourceError(f"file {file} is gone; put it back, then run the job again")
    causes = _JAVA_CAUSE.findall(text, found.end())
    why = _one_line(causes[0]) if causes else "Spark does not say why"
    return SourceError(
        f"file {file} cannot be read ({why}): it is damaged or has another format; write it again under the "
        'same name, then run the job again; options = { ignoreCorruptFiles = "true" } skips such files'
    )


def _bad_log(text: str) -> StateError | None:
    found = _LOG_FILE.search(text)
    if found is None or "MALFORMED_LOG_FILE" not in text:
        return None
    return StateError(f"{_plain(found[1])}, a file of Spark's log, is corrupted; {RESTORE}")


def _bad_expression(text: str) -> EvaluationError | None:
    """An expression over one input, which Spark evaluates before rows enter the view."""
    found = _EXPRESSION.search(text)
    if found is not None:
        sql = _one_line(found["sql"]).replace("`", "")
        return EvaluationError(f"{sql} fails on a row: {_one_line(found['why'])}")
    found = _BAD_VALUE.search(text)
    return None if found is None else EvaluationError(f"the view fails on a row: {_one_line(found['why'])}")


def _bad_disk(text: str) -> SpillwayError | None:
    reason, place = disk_reason(text), _LOG_PLACE.search(text)
    if reason is None:
        return None
    if place is not None and any(name in text for name in _LOG_CLASSES):
        return CheckpointError(f"Spark cannot write its log to {_plain(place[1])}: {reason}")
    if any(name in text for name in _SCRATCH_CLASSES):
        return SessionError(
            f"Spark cannot write to its scratch directory (spark.local.dir, by default /tmp): {reason}"
        )
    return None


def comes_from_spark(error: BaseException) -> bool:
    """Whether an error of Spark is among the causes of `error`, so that there are details worth keeping."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:  # the cause of a query's error may be caused by it
        if isinstance(cause, PySparkException | Py4JError):
            return True
        causes.append(cause)
        cause = cause.__cause__
    return False


def first_cause(error: BaseException) -> str:
    """The telling message of a wrapped error, on one line: Spark's own name for it, else the innermost."""
    text = str(error)
    causes = _CAUSE.findall(text)
    named = [cause for cause in causes if _CONDITION.match(cause)]
    if named or causes:
        return _one_line((named or causes)[-1])
    return _one_line(text.strip().splitlines()[0]) if text.strip() else type(error).__name__


def _one_line(text: str) -> str:
    return " ".join(_CLUTTER.sub("", text).split())


def _plain(path: str) -> str:
    """A path as the user writes it: `file:///data/a%20b` is `/data/a b`."""
    return re.sub("^/+", "/", unquote(path.removeprefix("file:"))) if path.startswith("file:") else path
