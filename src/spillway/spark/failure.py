"""From what Spark throws to the one line that the user needs.

An error raised in a Python worker or inside a batch reaches the driver wrapped in stack traces of two
languages. If a `SpillwayError` is inside, that is what happened; otherwise the first telling line is.
"""

import re

from spillway import errors
from spillway.errors import SpillwayError

_OURS = re.compile(r"spillway\.errors\.(\w+): (.*)")
_CAUSE = re.compile(r"^(?:Caused by: |py4j\.protocol\.\w+: )?[\w.$]*(?:Error|Exception): (.+)$", re.MULTILINE)


def as_spillway_error(error: BaseException) -> SpillwayError | None:
    """The Spillway error that `error` is or carries, or None when it is none of ours."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, SpillwayError):
            return seen
        seen = seen.__cause__ or seen.__context__
    match = _OURS.search(str(error))
    if match is None:
        return None
    kind = getattr(errors, match[1], SpillwayError)
    return kind(match[2]) if isinstance(kind, type) and issubclass(kind, SpillwayError) else None


def first_cause(error: BaseException) -> str:
    """The innermost message of a wrapped error, on one line."""
    text = str(error)
    causes = _CAUSE.findall(text)
    line = causes[-1] if causes else text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return str(line).strip()
