"""Plays random histories, and counts them for `make histories`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from history import Check, History, told


@pytest.fixture(scope="session")
def play(quick_directory: Callable[[], Path]) -> Iterator[Callable[[Check, History], None]]:
    played = 0

    def one(check: Check, history: History) -> None:
        nonlocal played
        told(check, history, quick_directory())
        played += 1

    yield one
    if file := os.environ.get("SPILLWAY_HISTORIES"):
        with Path(file).open("a") as counts:
            counts.write(f"{played}\n")
