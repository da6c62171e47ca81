"""Journals of other versions are read; what is no entry is refused by its line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.entries import made_epoch, made_part
from spillway.errors import StateError
from spillway.manager.journal.entry import EpochEntry, EpochKind, EpochSeconds
from spillway.manager.journal.file import FILE_NAME, read_journal
from spillway.manager.spill import Spill

OLD: dict[str, Any] = {
    "sequence": 3,
    "kind": "cleanup",
    "time": 1700000000.5,
    "seconds": {"order": 0.1, "execute": 1, "commit": 0.2, "sink": 0, "total": 1.3},
    "input_rows": 0,
    "results": 7,
    "pending_rows": 0,
    "processors": [{"processor": 0, "resident_bytes": 9, "probed_rows": 5, "group_results": {"1": 7}}],
    "spills": [{"processor": 0, "groups": [0, 2], "bytes": 4, "resident_bytes": 13, "reason": "random"}],
}
"""What lines of all versions have."""
ENTRY = replace(
    made_epoch(
        sequence=3,
        kind=EpochKind.CLEANUP,
        time=1700000000.5,
        results=7,
        processors=(made_part(0, resident_bytes=9, probed_rows=5, group_results={1: 7}),),
        spills=(Spill(0, 0b101, 4, 13, "random"),),
    ),
    seconds=EpochSeconds(0.1, 1, 0.2, 0, 1.3),
)


def read(directory: Path, *lines: object) -> list[EpochEntry]:
    (directory / FILE_NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(read_journal(directory / FILE_NAME))


def test_a_line_of_an_older_version_gets_defaults(tmp_path: Path) -> None:
    (entry,) = read(tmp_path, OLD)
    assert entry == ENTRY
    assert entry.is_cleanup
    assert (entry.token, entry.swaps, entry.relocation.switched, entry.lineage.one_in) == (None, (), (), 1)


def test_keys_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    (part,) = OLD["processors"]
    later = OLD | {"colour": "red", "processors": [part | {"temperature": 40}]}
    assert read(tmp_path, later, OLD) == [ENTRY, ENTRY]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"kind": "round", "round": 1}, "key 'sequence' is missing"),
        (OLD | {"results": "many"}, "key 'results' is 'many', not int"),
        (OLD | {"spills": [{"processor": 0}]}, "key 'spills.groups' is missing"),
        (OLD | {"seconds": {"total": 3}}, "key 'seconds.order' is missing"),
    ],
)
def test_a_line_that_is_no_epoch_is_refused(tmp_path: Path, line: object, problem: str) -> None:
    with pytest.raises(StateError, match=f"is damaged: line 2 is not an epoch: {problem}; remove it"):
        read(tmp_path, OLD, line)
