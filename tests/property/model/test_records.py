"""The codec writes what was written by hand, byte for byte, and reads it back."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.hand_written import (
    identity_json,
    manifest_json,
    message_json,
    record_json,
    relocation_json,
    report_json,
)
from spillway.manager.checkpoint import Identity
from spillway.manager.journal.entry import RelocationEntry
from spillway.manager.journal.epoch import relocation_entry
from spillway.manager.relocation.decision import Abandoned, Decision, MovesStep, Refusal
from spillway.manager.relocation.moves import Load, MoveInProgress
from spillway.model.codec import from_json, from_text, to_json, to_text
from spillway.policy.placement.suggestion import ForcedSpill, Move
from spillway.state.graph.level_message import LevelMessage
from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import Manifest
from spillway.state.log.record import Counters, EpochRecord, OwedEpoch
from spillway.state.orders.report import Report
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.pending import Pending
from spillway.state.rows.run import EventTimes, Position, Run

COUNTS = st.integers(0, 2**40)
FEW = st.integers(0, 9)
MASKS = st.integers(0, 2**256 - 1)
SECONDS = st.floats(0, 1e6)
TEXTS = st.text(max_size=8)
TRIPLES = st.dictionaries(st.integers(0, 2_000), st.tuples(COUNTS, COUNTS, COUNTS))
BY_GROUP = st.dictionaries(st.integers(0, 2_000), COUNTS)
LATEST = st.lists(st.none() | st.integers(-(2**40), 2**40), max_size=3).map(tuple)


def tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """None, one, or so many that they are read by columns."""
    return st.lists(strategy, max_size=12).map(tuple)


RUNS = st.builds(
    Run,
    TEXTS,
    FEW,
    st.builds(Position, COUNTS, FEW, FEW),
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    MASKS,
    MASKS,
    st.none() | st.builds(EventTimes, COUNTS, COUNTS, COUNTS),
    FEW,
    MASKS,
)
PENDING = st.builds(
    Pending,
    TEXTS,
    FEW,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    MASKS,
    tuples(COUNTS),
    COUNTS,
    COUNTS,
    st.none() | COUNTS,
)
CURSORS = st.builds(Cursor, MASKS, st.booleans(), st.integers(-(2**63), 2**63 - 1), COUNTS, COUNTS)
SLICES = tuples(st.tuples(TEXTS, MASKS))
QUEUES = st.dictionaries(FEW, tuples(PENDING), max_size=3)
COUNTERS = st.builds(Counters, *[COUNTS] * 11)
FILES = st.dictionaries(TEXTS, tuples(st.tuples(TEXTS, COUNTS, COUNTS)), max_size=3)
OWED = st.builds(OwedEpoch, COUNTS, tuples(st.tuples(TEXTS, COUNTS, COUNTS)))
PLACEMENTS = tuples(FEW)
RECORDS = st.builds(
    EpochRecord,
    sequence=COUNTS,
    token=FEW,
    batch_id=st.none() | COUNTS,
    added=tuples(RUNS),
    replaced=SLICES,
    pending=QUEUES,
    files=FILES,
    counters=COUNTERS,
    placement=st.none() | PLACEMENTS,
    processors=st.none() | FEW,
    spilled=MASKS,
    grown=TRIPLES,
    collected=st.dictionaries(FEW, st.tuples(COUNTS, COUNTS)),
    cursors=tuples(CURSORS),
    cleaned=MASKS,
    restored=MASKS,
    shrunk=st.dictionaries(FEW, st.tuples(COUNTS, COUNTS)),
    dropped=SLICES,
    latest=LATEST,
    watermark=st.none() | COUNTS,
    suspended=MASKS,
    delivered=st.dictionaries(TEXTS, COUNTS, max_size=3),
    lineage=TRIPLES,
)
MANIFESTS = st.builds(
    Manifest,
    sequence=COUNTS,
    batch_id=st.integers(-1, 9),
    placement=PLACEMENTS,
    processors=st.none() | FEW,
    runs=tuples(RUNS).map(lambda runs: {run.name: run for run in runs}),
    pending=QUEUES,
    counters=COUNTERS,
    groups=st.dictionaries(st.integers(0, 2_000), st.builds(GroupState, tuples(COUNTS), *[COUNTS] * 12)),
    cursors=tuples(CURSORS),
    latest=LATEST,
    watermark=st.none() | COUNTS,
    suspended=MASKS,
    owed=st.dictionaries(TEXTS, tuples(OWED), max_size=3),
    batch_token=COUNTS,
)
REPORTS = st.builds(
    Report,
    collected_rows=BY_GROUP,
    collected_bytes=BY_GROUP,
    read_bytes=COUNTS,
    work=COUNTS,
    processor=FEW,
    host=TEXTS,
    executor=TEXTS,
    added=tuples(RUNS),
    replaced=SLICES,
    pending=tuples(PENDING),
    files=FILES,
    input_rows=COUNTS,
    probed_rows=COUNTS,
    results=COUNTS,
    resident_bytes=COUNTS,
    loaded_bytes=COUNTS,
    busy_seconds=SECONDS,
    seconds=st.dictionaries(TEXTS, SECONDS, max_size=3),
    group_rows=BY_GROUP,
    group_bytes=BY_GROUP,
    group_results=BY_GROUP,
    freed_bytes=COUNTS,
    peak_bytes=COUNTS,
    cursors=tuples(CURSORS),
    cleaned=MASKS,
    restored=MASKS,
    latest=LATEST,
    late_rows=COUNTS,
    null_time_rows=COUNTS,
    expired_rows=BY_GROUP,
    expired_bytes=BY_GROUP,
    lineage=TRIPLES,
    wall_seconds=SECONDS,
    served_rows=st.none() | BY_GROUP,
)
MESSAGES = st.builds(
    LevelMessage,
    st.dictionaries(FEW, TEXTS, max_size=3),
    COUNTS,
    st.frozensets(st.tuples(FEW, FEW, TEXTS)),
)
IDENTITIES = st.builds(
    Identity,
    TEXTS,
    TEXTS,
    tuples(tuples(TEXTS)),
    FEW,
    st.dictionaries(TEXTS, st.tuples(TEXTS, TEXTS), max_size=3).map(
        lambda places: tuple((name, *place) for name, place in places.items())
    ),
    TEXTS,
    st.none() | TEXTS,
)


@given(st.data())
@pytest.mark.parametrize(
    ("strategy", "by_hand"),
    [
        (RECORDS, record_json),
        (MANIFESTS, manifest_json),
        (REPORTS, report_json),
        (MESSAGES, message_json),
        (IDENTITIES, identity_json),
    ],
)
def test_records_are_written_as_by_hand_and_read_back(
    strategy: st.SearchStrategy[Any], by_hand: Callable[[Any], object], data: st.DataObject
) -> None:
    record = data.draw(strategy)
    text = to_text(record)
    assert text == json.dumps(by_hand(record), separators=(",", ":"))
    assert from_text(type(record), text) == record


MOVES = st.builds(Move, MASKS, FEW, FEW, COUNTS, TEXTS, st.booleans())
FORCED = st.builds(ForcedSpill, FEW, MASKS, COUNTS, TEXTS)
MOVING = st.builds(MoveInProgress, COUNTS, MOVES, st.just(()), COUNTS, SECONDS)


@given(
    st.builds(
        Decision,
        tuples(MOVING),
        tuples(FORCED),
        tuples(st.builds(Refusal, MOVES | FORCED, TEXTS)),
        st.frozensets(FEW),
    ),
    st.builds(
        MovesStep,
        tuples(st.builds(Load, COUNTS, FEW, FEW, COUNTS)),
        tuples(MOVING),
        tuples(st.builds(Abandoned, COUNTS, FEW, MASKS, TEXTS)),
    ),
)
def test_relocations_are_written_as_by_hand_and_read_back(decision: Decision, step: MovesStep) -> None:
    entry = relocation_entry(decision, step)
    assert to_json(entry) == relocation_json(decision, step)
    assert from_json(RelocationEntry, to_json(entry), "here", newer=True) == entry
