"""A journal that cannot be written."""

from pathlib import Path

import pytest

from spillway.errors import StateError
from spillway.maintain import FailedRoundEntry
from spillway.manager.journal.file import Journal


def test_a_full_disk_names_the_journal(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        assert journal._file is not None
        journal._file.close()
        journal._file = Path("/dev/full").open("a")  # noqa: SIM115 - the journal closes it
        with pytest.raises(
            StateError, match=r"cannot write the journal /dev/full: No space left on .*; free"
        ):
            journal.append(FailedRoundEntry(1.0, "x"))


def test_a_journal_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StateError, match=r"cannot write the journal .*/file/journal.jsonl: "):
        Journal(tmp_path / "file" / "journal.jsonl")
