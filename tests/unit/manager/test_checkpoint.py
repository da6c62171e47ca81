"""Whose checkpoint it is, where the memory tier lies, and what the journal keeps."""

import fcntl
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kit.entries import made_epoch
from spillway.errors import CheckpointError
from spillway.manager.checkpoint import Checkpoint, Identity
from spillway.manager.journal.file import Journal, read_journal
from spillway.state.memory import tier_directory
from spillway.state.memory.tier_directory import TierDirectory, choose_directory

IDENTITY = Identity("f00d", "SELECT 1", (("bigint", "string"), ("bigint",)), 256)


def test_a_checkpoint_has_one_id_for_ever(tmp_path: Path) -> None:
    first = Checkpoint(str(tmp_path / "state"), IDENTITY)
    first.close()
    first.close()
    second = Checkpoint(str(tmp_path / "state"), IDENTITY)
    assert second.query_id == first.query_id
    second.close()
    other = Checkpoint(str(tmp_path / "other"), IDENTITY)
    assert other.query_id != first.query_id
    other.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"view": "SELECT 2", "fingerprint": "beef"}, "the view was SELECT 1, now it is SELECT 2"),
        ({"schema": (("int",),)}, r"the schema was .*bigint.*, now it is \[\['int'\]\]"),
        ({"groups": 8}, "groups was 256, now it is 8"),
        ({"fingerprint": "beef"}, "the plan was f00d, now it is beef"),
        (
            {"view": "SELECT " + "x" * 500, "fingerprint": "beef"},
            r"the view was SELECT 1, now it is SELECT x+\.\.\.;",
        ),
    ],
)
def test_another_query_is_refused_and_can_be_repaired(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    Checkpoint(str(tmp_path), IDENTITY).close()
    before = (tmp_path / "query.json").read_bytes()
    with pytest.raises(CheckpointError, match=rf"{tmp_path} belongs to another query: {message}"):
        Checkpoint(str(tmp_path), replace(IDENTITY, **change))  # type: ignore[arg-type]
    assert (tmp_path / "query.json").read_bytes() == before
    Checkpoint(str(tmp_path), IDENTITY).close()


def test_two_drivers_at_once_are_one_too_many(tmp_path: Path) -> None:
    held = Checkpoint(str(tmp_path), IDENTITY)
    with pytest.raises(
        CheckpointError, match=rf"is in use by process {os.getpid()}; stop it, or use another"
    ):
        Checkpoint(str(tmp_path), IDENTITY)
    held.close()
    Checkpoint(str(tmp_path), IDENTITY).close()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        CheckpointError, match=r"cannot write to .*file/state: .*; give a directory"
    ) as caught:
        Checkpoint(str(tmp_path / "file" / "state"), IDENTITY)
    assert "\n" not in str(caught.value)


def test_the_tier_of_a_dead_driver_is_removed_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name, owner in (("dead", f"owner-{dead.pid}"), ("alive", "owner-1"), ("nobody", "owner-")):
        (tmp_path / name).mkdir()
        (tmp_path / name / owner).touch()
        (tmp_path / name / "x.image").write_bytes(b"x")
    mine = TierDirectory(str(tmp_path / "mine"), in_memory=False)
    mine.claim()
    mine.claim()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alive", "mine"]
    mine.remove()
    mine.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["alive"]


def test_a_tmpfs_is_used_only_when_the_budget_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier_directory, "TMPFS", tmp_path)
    monkeypatch.setattr(tier_directory, "_is_tmpfs", lambda path: path == tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "disk"))
    user = f"spillway-{os.getuid()}"
    free = tier_directory.shutil.disk_usage(tmp_path).free
    assert choose_directory(None, "q", 1) == TierDirectory(str(tmp_path / user / "q"), in_memory=True)
    assert not choose_directory(None, "q", free * 2).in_memory
    chosen = choose_directory(str(tmp_path / "own"), "q", None)
    assert chosen == TierDirectory(str(tmp_path / "own" / user / "q"), in_memory=False)


def test_the_journal_drops_a_line_that_a_kill_cut(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    first, second = made_epoch(sequence=0), made_epoch(sequence=1)
    with Journal(path) as journal:
        journal.append(first)
        assert list(read_journal(path)) == [first]
    with path.open("a") as file:
        file.write('{"sequence": 1, "cut')
    assert list(read_journal(path)) == [first]
    with Journal(path) as journal:
        journal.append(second)
    journal.append(made_epoch(sequence=2))
    assert list(read_journal(path)) == [first, second]
    Journal(None).append(first)


def test_what_a_refused_start_made_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    refused = Checkpoint(str(tmp_path / "mine" / "new" / "state"), IDENTITY)
    refused.abandon()
    refused.close()
    assert list((tmp_path / "mine").iterdir()) == []
    kept = Checkpoint(str(tmp_path / "mine" / "state"), IDENTITY)
    kept.storage.write("other", b"x")
    kept.abandon()
    kept.close()
    assert sorted(path.name for path in (tmp_path / "mine" / "state").iterdir()) == ["lock", "other"]


def test_a_lock_that_its_last_owner_removed_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other driver goes between the opening of the file here and its locking."""
    first = Checkpoint(str(tmp_path / "state"), IDENTITY)
    lock = fcntl.flock

    def after_the_other_is_gone(descriptor: int, how: int) -> None:
        if first._lock is not None:
            first.abandon()
            first.close()
            (tmp_path / "state").mkdir()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", after_the_other_is_gone)
    second = Checkpoint(str(tmp_path / "state"), IDENTITY)
    with pytest.raises(CheckpointError, match=f"in use by process {os.getpid()}"):
        Checkpoint(str(tmp_path / "state"), IDENTITY)
    second.close()
