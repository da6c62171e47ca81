"""One attempt of a processor at a time, and none of an epoch that is over."""

import os
import signal
import time
from pathlib import Path

import pytest

from spillway.errors import StateError
from spillway.state.memory.tier_lock import holding_tier


def hold_elsewhere(directory: str) -> int:
    """A process that holds the tier until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with holding_tier(directory, 1):
            os.write(writing, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    return child


def test_a_second_attempt_waits_until_the_first_is_gone(tmp_path: Path) -> None:
    tier = str(tmp_path / "token" / "0000")
    child = hold_elsewhere(tier)
    try:
        with (
            pytest.raises(StateError, match=r"still holds .*0000\.lock after 0\.1 s"),
            holding_tier(tier, 1, wait_seconds=0.1),
        ):
            pytest.fail("both hold it")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with holding_tier(tier, 1, wait_seconds=0.1), holding_tier(tier + "1", 1, wait_seconds=0.1):
        pass


def test_a_task_of_an_epoch_that_is_over_ends(tmp_path: Path) -> None:
    tier = str(tmp_path / "0000")
    for sequence in (9, 9, 10, 123):
        with holding_tier(tier, sequence):
            pass
    with pytest.raises(StateError, match="epoch 122 came late: epoch 123 has begun"), holding_tier(tier, 122):
        pytest.fail("it ran")
    with holding_tier(tier, 123):
        pass
