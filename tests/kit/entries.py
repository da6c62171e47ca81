"""Made-up entries of a journal."""

from dataclasses import replace
from typing import Any

from spillway.manager.journal.entry import EpochEntry, EpochKind, EpochSeconds, ProcessorEntry

_NOTHING = EpochEntry(
    sequence=0,
    input_rows=0,
    results=0,
    pending_rows=0,
    spills=(),
    processors=(),
    kind=EpochKind.EPOCH,
    time=0.0,
    seconds=EpochSeconds(0, 0, 0, 0, 0),
)
_NO_PART = ProcessorEntry(processor=0, probed_rows=0, resident_bytes=0, group_results={})


def made_epoch(seconds: float = 0.0, **changes: Any) -> EpochEntry:
    return replace(_NOTHING, seconds=EpochSeconds(0, 0, 0, 0, seconds), **changes)


def made_part(processor: int, **changes: Any) -> ProcessorEntry:
    return replace(_NO_PART, processor=processor, **changes)
