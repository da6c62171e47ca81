"""Round after round: keeps a view up to date until it is stopped.

A source that fails, or a row on which an expression of the view fails, ends a single round with its error. A
run with `until = "forever"` reports the error and tries again: nothing of the failed round was committed, and
the next one begins where the view is.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spillway.errors import EvaluationError, SourceError, SpillwayError
from spillway.maintain.round_report import RoundReport

LEAST_WAIT_SECONDS = 1.0
"""Between a failed round and the next try."""


class Rounds(Protocol):
    """What makes a round; None when nothing has changed."""

    def round(self) -> RoundReport | None: ...


def run_rounds(
    manager: Rounds,
    *,
    forever: bool,
    interval_seconds: float,
    stop: threading.Event,
    done: Callable[[RoundReport], None],
    failed: Callable[[SpillwayError], None],
) -> None:
    """One round, or rounds until `stop` is set; every report goes to `done`, every failure to `failed`."""
    while True:
        wait_seconds = interval_seconds
        try:
            report = manager.round()
            if report is not None:
                done(report)
        except (SourceError, EvaluationError) as error:
            if not forever:
                raise
            failed(error)
            wait_seconds = max(interval_seconds, LEAST_WAIT_SECONDS)
        if not forever or stop.wait(wait_seconds):
            return


def lag_metrics(reports: Sequence[RoundReport]) -> dict[str, Any]:
    """How far the view was behind its sources."""
    lags = [report.lag_seconds for report in reports]
    waits = [report.freshness_seconds for report in reports if report.freshness_seconds is not None]
    return {
        "lag_seconds_median": round(statistics.median(lags), 4) if lags else None,
        "lag_seconds_max": round(max(lags), 4) if lags else None,
        "freshness_seconds_median": round(statistics.median(waits), 4) if waits else None,
        "freshness_seconds_max": round(max(waits), 4) if waits else None,
    }
