"""A time limit: what is in time is untouched, what is not is told to stop until it does."""

import threading
import time

import pytest

from spillway.errors import ComputeError
from spillway.lab.engines.time_limit import within


def test_what_is_in_time_is_not_told_to_stop() -> None:
    told: list[int] = []
    assert within(60.0, lambda: 7, lambda: told.append(1)) == 7
    with pytest.raises(KeyError):
        within(60.0, lambda: {}[1], lambda: told.append(1))
    assert told == []


def test_an_engine_that_hears_late_is_told_again() -> None:
    told = 0
    stopped = threading.Event()

    def cancel() -> None:
        nonlocal told
        told += 1
        if told == 2:
            stopped.set()

    def run() -> None:
        assert stopped.wait(30.0)
        raise ValueError("job cancelled")

    began = time.monotonic()
    with pytest.raises(ComputeError, match=r"stopped after 0\.1 s"):
        within(0.1, run, cancel)
    assert told >= 2
    assert time.monotonic() - began < 20.0
