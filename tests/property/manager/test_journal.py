"""The journal of random histories is what was written by hand, and is read back as it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import given

from kit.examples import tries
from kit.hand_written import epoch_json
from kit.histories import History
from property.manager.test_engine import check, histories
from spillway.manager import engine
from spillway.manager.journal.entry import EpochEntry
from spillway.manager.journal.epoch import epoch_entry
from spillway.model.codec import from_json, to_text


@given(histories())
@tries(5)
def test_entries_are_written_as_by_hand_and_read_back(
    quick_directory: Callable[[], Path], history: History
) -> None:
    made: list[EpochEntry] = []

    def compared(*values: Any, **options: Any) -> EpochEntry:
        entry = epoch_entry(*values, **options)
        line = json.loads(to_text(entry))
        kind, seconds = options["kind"].value, line["seconds"]
        rest = {"kind": kind, "malformed_rows": options["malformed_rows"], "time": options["time"]}
        assert line == json.loads(json.dumps(epoch_json(*values) | rest | {"seconds": seconds}))
        assert list(seconds) == ["order", "execute", "commit", "sink", "total"]
        assert from_json(EpochEntry, line, "line") == entry
        made.append(entry)
        return entry

    with mock.patch.object(engine, "epoch_entry", compared):
        check(history, quick_directory())
    assert made
