"""Expressions of a view that fail on a value of a source: an overflow, a conversion that is not possible.

Rows are evaluated inside `evaluating`, so that such a failure is one line for the user, and the round can be
tried again once the row has changed. Nothing of the round has been committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from spillway.errors import EvaluationError


@contextmanager
def evaluating() -> Iterator[None]:
    """Turns DuckDB's complaint about a value into an error of the view."""
    try:
        yield
    except duckdb.DataError as error:
        reason = str(error).splitlines()[0].rstrip("!.")
        raise EvaluationError(
            f"an expression of the view fails on a row of its sources: {reason}; nothing was written: "
            "correct the row, or use wider types in the view"
        ) from error
