"""Rounds for ever: failures are reported and tried again, a stop ends them after the current round."""

import threading

import pytest

from spillway.errors import SourceError
from spillway.maintain import continuous
from spillway.maintain.continuous import lag_metrics, run_rounds
from spillway.maintain.round_report import RoundReport


class Scripted:
    """Does what its script says, and stops the run at its end."""

    def __init__(self, script: list[RoundReport | SourceError | None], stop: threading.Event) -> None:
        self.script, self.stop = script, stop

    def round(self) -> RoundReport | None:
        step = self.script.pop(0)
        if not self.script:
            self.stop.set()
        if isinstance(step, SourceError):
            raise step
        return step


def run(script: list[RoundReport | SourceError | None], *, forever: bool) -> tuple[list[int], list[str]]:
    stop, done, failed = threading.Event(), list[int](), list[str]()
    run_rounds(
        Scripted(script, stop),
        forever=forever,
        interval_seconds=0.0,
        stop=stop,
        done=lambda report: done.append(report.round),
        failed=lambda error: failed.append(str(error)),
    )
    return done, failed


def test_failures_are_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuous, "LEAST_WAIT_SECONDS", 0.0)
    first, second = (RoundReport(number, "batch", 1) for number in (1, 2))
    assert run([first, SourceError("away"), None, second], forever=True) == ([1, 2], ["away"])


def test_one_round_ends_with_its_error() -> None:
    with pytest.raises(SourceError, match="away"):
        run([SourceError("away")], forever=False)
    assert run([RoundReport(1, "batch", 1), None], forever=False) == ([1], [])


def test_metrics() -> None:
    reports = [
        RoundReport(number, "batch", 1, lag_seconds=lag, freshness_seconds=fresh)
        for number, (lag, fresh) in enumerate([(1.0, 5.0), (3.0, None), (2.0, 9.0)])
    ]
    metrics = lag_metrics(reports)
    assert (metrics["lag_seconds_median"], metrics["lag_seconds_max"]) == (2.0, 3.0)
    assert (metrics["freshness_seconds_median"], metrics["freshness_seconds_max"]) == (7.0, 9.0)
    assert lag_metrics([])["lag_seconds_max"] is None
