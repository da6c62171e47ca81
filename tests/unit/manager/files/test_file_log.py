"""The file log against histories of drivers: committed batches count, all else never happened."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import CheckpointError, StateError
from spillway.manager.files.entry import FileBatch, FileEntry
from spillway.manager.files.log import (
    DIRECTORY,
    MERGED,
    FileLog,
    first_logged,
    has_file_log,
    record_name,
    remove_file_log,
)
from spillway.state.storage.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("a", "b")


def batch(number: int, mark: str = "") -> FileBatch:
    first = FileEntry(f"/a/{number}{mark}", 10 + number, 1000 + number)
    return FileBatch(number, ((first,), (FileEntry(f"/b/{number}{mark}", 5, 7),) if number % 3 else ()))


def expected(committed: list[FileBatch]) -> list[dict[str, tuple[int, int]]]:
    return [
        {
            entry.path: (entry.size_bytes, entry.modified_ms)
            for done in committed
            for entry in done.files[number]
        }
        for number in range(len(NAMES))
    ]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), min_size=1, max_size=6))
def test_what_is_committed_is_known_after_any_lives(
    quick_directory: "Callable[[], Path]", lives: list[tuple[int, int]]
) -> None:
    """Each driver commits some batches and dies with some more planned."""
    storage = Storage(str(quick_directory()))
    committed: list[FileBatch] = []
    token, of_last = 0, 0
    for commits, planned in lives:
        token += 1
        log = FileLog(storage, token, NAMES)
        assert log.load(len(committed) - 1, of_last) == expected(committed)
        for step in range(commits + planned):
            made = batch(len(committed) + max(0, step - commits), f"-{token}")
            log.plan(made, len(committed) - 1)
            if step < commits:
                committed.append(made)
                of_last = token
    log = FileLog(storage, token + 1, NAMES)
    assert log.load(len(committed) - 1, of_last) == expected(committed)
    kept = len(storage.list(f"{DIRECTORY}/"))
    levels = 1
    while MERGED**levels <= len(committed):
        levels += 1
    assert kept <= levels * MERGED + 2 * MERGED + sum(planned for _, planned in lives)


def test_a_driver_thought_dead_cannot_touch_what_counts(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    old = FileLog(storage, 1, NAMES)
    old.load(-1, 0)
    old.plan(batch(0), -1)
    old.plan(batch(1, "-old"), 0)
    new = FileLog(storage, 2, NAMES)
    assert new.load(0, 1) == expected([batch(0)])
    new.plan(batch(1, "-new"), 0)
    old.plan(batch(2, "-old"), 0)
    assert FileLog(storage, 3, NAMES).load(1, 2) == expected([batch(0), batch(1, "-new")])
    # If the old one had committed its batch just before it was fenced, its record counts.
    assert FileLog(storage, 3, NAMES).load(1, 1) == expected([batch(0), batch(1, "-old")])


def test_a_late_start_deletes_nothing_of_the_driver_in_charge(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    first = FileLog(storage, 1, NAMES)
    first.load(-1, 0)
    for number in range(MERGED):
        first.plan(batch(number), number - 1)
    slow, fast = FileLog(storage, 2, NAMES), FileLog(storage, 3, NAMES)
    fast.load(MERGED - 1, 1)
    fast.plan(batch(MERGED), MERGED - 1)  # merges what is before
    slow.load(MERGED - 1, 1)
    assert FileLog(storage, 4, NAMES).load(MERGED, 3) == expected([batch(n) for n in range(MERGED + 1)])


def test_two_drivers_of_one_token_are_refused(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    FileLog(storage, 1, NAMES).plan(batch(0), -1)
    with pytest.raises(CheckpointError, match="another driver uses this checkpoint"):
        FileLog(storage, 1, NAMES).plan(batch(0), -1)


def test_a_log_that_lacks_a_committed_batch_is_refused(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = FileLog(storage, 1, NAMES)
    log.load(-1, 0)
    for number in range(3):
        log.plan(batch(number), number - 1)
    with pytest.raises(CheckpointError, match="lacks batch 3, which the manifest has"):
        FileLog(storage, 2, NAMES).load(3, 1)
    storage.delete([record_name(1, 1)])
    with pytest.raises(CheckpointError, match="lacks batch 1, which the manifest has"):
        FileLog(storage, 2, NAMES).load(2, 1)


def test_a_log_that_begins_too_late_is_refused(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    FileLog(storage, 1, NAMES).plan(batch(1), 0)
    with pytest.raises(CheckpointError, match="lacks batch 0, which the manifest has"):
        FileLog(storage, 2, NAMES).load(1, 1)


def test_a_damaged_record_is_refused_by_name(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = FileLog(storage, 1, NAMES)
    log.plan(batch(0), -1)
    path = tmp_path / record_name(0, 1)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"/a/0", b"/a/9"))
    with pytest.raises(StateError, match=r"000000000000\.000001\.0\.json is corrupted: checksum"):
        FileLog(storage, 2, NAMES).load(0, 1)
    path.write_bytes(whole[:40])
    with pytest.raises(StateError, match="is corrupted"):
        FileLog(storage, 2, NAMES).load(0, 1)


def test_other_inputs_are_refused(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    FileLog(storage, 1, NAMES).plan(batch(0), -1)
    with pytest.raises(CheckpointError, match="has files of the inputs a, b, now they are b, a"):
        FileLog(storage, 2, ("b", "a")).load(0, 1)


def test_the_first_file_below_a_directory(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    assert not has_file_log(storage)
    assert first_logged(storage, "/a") is None
    log = FileLog(storage, 1, NAMES)
    for number in range(2):
        log.plan(batch(number), number - 1)
    assert first_logged(storage, "/a") == "/a/0"
    assert first_logged(storage, "file:///b/") == "/b/1"
    assert first_logged(storage, "/c") is None
    assert has_file_log(storage)
    remove_file_log(storage)
    assert not has_file_log(storage)
