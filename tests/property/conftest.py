"""Plays random histories, and counts them for `make histories`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from kit.examples import EVERYDAY
from kit.histories import EVERYDAY_STEPS, Check, History, Player, told


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """To shrink a history takes minutes, and without it there would be none to paste."""
    for item in items:
        if item.get_closest_marker("histories") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def play(quick_directory: Callable[[], Path]) -> Iterator[Callable[[Check, History], None]]:
    played = 0

    def one(check: Check, history: History) -> None:
        nonlocal played
        with mock.patch.object(Player, "most_steps", EVERYDAY_STEPS if EVERYDAY else None):
            told(check, history, quick_directory())
        played += 1

    yield one
    if file := os.environ.get("SPILLWAY_HISTORIES"):
        with Path(file).open("a") as counts:
            counts.write(f"{played}\n")
