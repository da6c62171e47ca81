"""What each field of an epoch's record changes in the manifest, and that every field survives storage."""

from dataclasses import fields, replace

from spillway.model import from_text, to_json, to_text
from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import NO_BATCH, Manifest
from spillway.state.log.record import Counters, EpochRecord, OwedEpoch
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.pending import Pending
from spillway.state.rows.run import EventTimes, Position, Run

PLACEMENT = (0, 0, 1, 1)
NOTHING = EpochRecord(0, 1, None, (), (), {}, {}, Counters())
EMPTY = Manifest(-1, NO_BATCH, PLACEMENT)


def run(name: str, *, live: int = 0, spilled: int = 0, rows: int = 1, epoch: int = 0) -> Run:
    return Run(name, 0, Position(epoch), epoch, rows, 10, 1, live, spilled)


def waiting(groups: int, *, emitted: int = 0, earliest: int | None = None) -> Pending:
    counts = (7,) * groups.bit_count()
    return Pending("pending/x", 1, 9, 90, 7, 900, groups, counts, skip=2, emitted=emitted, earliest=earliest)


def after(manifest: Manifest, **changes: object) -> Manifest:
    return manifest.apply(replace(NOTHING, sequence=manifest.sequence + 1, **changes))  # type: ignore[arg-type]


def test_every_field_of_a_record_survives_storage() -> None:
    full = EpochRecord(
        sequence=7,
        token=3,
        batch_id=5,
        added=(Run("runs/a", 1, Position(3, 1, 2), 4, 5, 6, 7, 0b10, 0b100, EventTimes(1, 2, 3), 8),),
        replaced=(("runs/b", 0b11),),
        pending={2: (waiting(0b1, emitted=4, earliest=11),)},
        files={"": (("f.parquet", 2, 30),)},
        counters=Counters(1, 2, 3, 4, 5, 6, 7, 8),
        placement=(1, 0, 1, 0),
        processors=3,
        spilled=0b1,
        grown={1: (2, 3, 4)},
        collected={1: (2, 3)},
        cursors=(Cursor(0b11, True, 100, 4, 5),),
        cleaned=0b10,
        restored=0b100,
        shrunk={3: (4, 5)},
        dropped=(("runs/c", 0b1000),),
        latest=(9, None),
        watermark=8,
        suspended=0b1000,
        delivered={"": 5},
        lineage={2: (3, 4, 5)},
    )
    empty = replace(NOTHING, sequence=7)
    for field in fields(EpochRecord):
        assert getattr(full, field.name) != getattr(replace(empty, sequence=0), field.name), field.name
    assert from_text(EpochRecord, to_text(full)) == full
    assert from_text(EpochRecord, to_text(empty)) == empty


def test_every_field_of_a_manifest_survives_storage() -> None:
    full = Manifest(
        sequence=7,
        batch_id=5,
        placement=(1, 0),
        runs={"runs/a": run("runs/a", live=0b1)},
        pending={1: (waiting(0b1),)},
        counters=Counters(1, 2, 3, 4, 5, 6, 7, 8),
        groups={1: GroupState((1, 2), 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)},
        cursors=(Cursor(0b11, False, 100, 4, 5),),
        latest=(9, None),
        watermark=8,
        suspended=0b1,
        processors=3,
        owed={"": (OwedEpoch(7, (("f.parquet", 2, 30),)),)},
        batch_token=4,
    )
    for field in fields(Manifest):
        assert getattr(full, field.name) != getattr(EMPTY, field.name), field.name
    assert from_text(Manifest, to_text(full)) == full
    assert from_text(Manifest, to_text(EMPTY)) == EMPTY


def test_the_token_is_that_of_the_last_batch() -> None:
    first = EMPTY.apply(replace(NOTHING, sequence=EMPTY.sequence + 1, token=3, batch_id=EMPTY.batch_id + 1))
    later = first.apply(replace(NOTHING, sequence=first.sequence + 1, token=5, batch_id=None))
    assert (first.batch_token, later.batch_token) == (3, 3)


def test_what_a_sink_lacks_is_kept_until_a_record_says_that_it_has_it() -> None:
    held = EMPTY
    for sequence, delivered in enumerate([-1, 0, 0, 2]):
        files = {"a": ((f"{sequence}.parquet", 2, 30),), "b": ()}
        held = after(held, files=files, delivered={"a": delivered, "b": sequence - 1})
    assert [epoch.sequence for epoch in held.owed["a"]] == [3]
    assert held.owed["b"] == (OwedEpoch(3, ()),)
    held = after(held, files={"a": (), "b": ()}, delivered={"a": 2, "b": 3})
    assert held.owed["a"] == (OwedEpoch(3, (("3.parquet", 2, 30),)), OwedEpoch(4, ()))


def test_counters_are_added_one_by_one() -> None:
    some, more = Counters(*range(1, 12)), Counters(*range(10, 120, 10))
    assert some.plus(more) == Counters(11, 22, 33, 44, 55, 66, 77, 88, 99, 110, 121)
    assert to_json(some.plus(more)) == [11, 22, 33, 44, 55, 66, 77, 88, 99, 110, 121]
    assert after(replace(EMPTY, counters=some), counters=more).counters == some.plus(more)


def test_rows_that_were_only_written_are_unsaid_until_a_clean_up_whatever_else_happens() -> None:
    held = after(EMPTY, added=(run("old", live=0b11),), grown={0: (4, 40, 2), 1: (6, 60, 3)})
    late = replace(run("late", live=0, spilled=0b11, epoch=1), unsaid=0b11)
    held = after(held, added=(late,), collected={0: (1, 10), 1: (2, 20)})
    assert held.split_groups == held.spilled_groups == 0b11
    assert (held.groups[0].rows, held.groups[0].spilled_rows, held.groups[0].total_bytes) == (4, 1, 50)
    more = after(held, spilled=0b11, added=(run("new", live=0b11, epoch=2),), grown={0: (1, 10, 0)})
    more = after(more, placement=(1, 1, 0, 0), suspended=0b10)
    assert more.runs["late"].unsaid == 0b11 and more.groups[0].unsaid_rows == 1
    assert from_text(Manifest, to_text(more)) == more
    done = after(more, cleaned=0b01)
    assert (done.runs["late"].unsaid, done.runs["late"].spilled) == (0b10, 0b11)
    assert (done.groups[0].unsaid_rows, done.split_groups) == (0, 0b10)
    back = after(more, restored=0b01)
    assert (back.runs["late"].unsaid, back.runs["late"].live) == (0b10, 0b01)
    assert (back.groups[0].unsaid_rows, back.groups[0].rows) == (0, 6)


def test_what_a_record_does_not_name_stays() -> None:
    before = replace(EMPTY, batch_id=4, processors=2, latest=(1,), watermark=1)
    same = after(before, latest=(1,), watermark=1, processors=2)
    assert same == replace(before, sequence=0)
    changed = after(before, batch_id=5, placement=(1, 1, 1, 1), latest=(3,), watermark=2, suspended=0b10)
    assert (changed.batch_id, changed.placement) == (5, (1, 1, 1, 1))
    assert (changed.latest, changed.watermark, changed.suspended, changed.processors) == ((3,), 2, 0b10, None)


def test_the_number_of_processors_is_that_of_the_placement_unless_it_is_known() -> None:
    assert EMPTY.processor_count == 2
    assert replace(EMPTY, processors=5).processor_count == 5
    assert replace(EMPTY, placement=(0, 0)).processor_count == 1


def test_a_spill_ends_the_generation_of_runs_that_were_there_before() -> None:
    old = after(EMPTY, added=(run("old", live=0b11),), grown={0: (4, 40, 2), 1: (6, 60, 3)})
    spilled = after(old, spilled=0b01, added=(run("new", live=0b01, epoch=1),), grown={0: (1, 10, 0)})
    assert (spilled.runs["old"].live, spilled.runs["old"].spilled) == (0b10, 0b01)
    assert (spilled.runs["new"].live, spilled.runs["new"].spilled) == (0b01, 0)
    state = spilled.groups[0]
    assert (state.ended, state.rows, state.bytes, state.born_epoch, state.active_epoch) == ((0,), 1, 10, 1, 1)
    assert (state.spilled_rows, state.spilled_bytes, state.spilled_results) == (4, 40, 2)
    assert (spilled.groups[1].rows, spilled.groups[1].ended) == (6, ())
    assert spilled.spilled_groups == 0b01 and spilled.split_groups == 0b01


def test_a_group_is_born_with_its_first_rows_and_active_while_rows_come() -> None:
    first = after(after(EMPTY), grown={2: (3, 30, 1)}, lineage={3: (5, 6, 7)})
    assert first.groups[2] == GroupState(rows=3, bytes=30, results=1, born_epoch=1, active_epoch=1)
    assert first.groups[3] == GroupState(born_epoch=1, outputs=5, inter_rows=6, inter_bytes=7)
    two = after(first, grown={2: (0, 0, 4)}, lineage={2: (1, 2, 3), 3: (10, 20, 30)})
    assert (two.groups[2].results, two.groups[2].active_epoch, two.groups[2].outputs) == (5, 1, 1)
    assert two.groups[3] == GroupState(born_epoch=1, outputs=15, inter_rows=26, inter_bytes=37)


def test_replaced_and_dropped_slices_leave_their_runs_and_an_empty_run_goes() -> None:
    before = replace(EMPTY, runs={"a": run("a", live=0b011, spilled=0b100)}, groups={2: GroupState((0,))})
    part = after(before, replaced=(("a", 0b001),))
    assert (part.runs["a"].live, part.runs["a"].spilled) == (0b010, 0b100)
    memory = after(part, dropped=(("a", 0b100),))
    assert (memory.runs["a"].live, memory.runs["a"].spilled) == (0b010, 0)
    assert after(memory, replaced=(("a", 0b010),)).runs == {}
    disk = after(before, replaced=(("a", 0b011),))
    assert (disk.runs["a"].live, disk.runs["a"].spilled) == (0, 0b100)


def test_what_expires_on_disk_is_taken_from_its_group_by_its_share_of_rows() -> None:
    """Three runs hold the group; of other groups nothing changes."""
    runs = {"a": run("a", spilled=0b01, rows=10), "b": run("b", spilled=0b11, rows=20)}
    runs |= {"c": run("c", spilled=0b01, rows=10), "d": run("d", spilled=0b10, rows=70)}
    groups = {0: GroupState((0,), spilled_bytes=100), 1: GroupState((0,), spilled_bytes=100)}
    before = replace(EMPTY, runs=runs, groups=groups)
    left = after(before, dropped=(("a", 0b01),))
    assert [left.groups[group].spilled_bytes for group in (0, 1)] == [75, 100]
    less = after(before, dropped=(("a", 0b01), ("b", 0b01)))
    assert [less.groups[group].spilled_bytes for group in (0, 1)] == [25, 100]
    none = after(before, dropped=(("a", 0b01), ("b", 0b01), ("c", 0b01)))
    assert none.groups[0] == GroupState() and none.groups[1] == groups[1]
    both = after(before, dropped=(("b", 0b11),))
    assert [both.groups[group].spilled_bytes for group in (0, 1)] == [50, 77]


def test_what_expires_in_memory_is_taken_from_its_group_and_the_last_row_takes_all() -> None:
    before = replace(
        EMPTY,
        runs={"a": run("a", live=0b01), "b": run("b", live=0b10, spilled=0b100)},
        groups={group: GroupState(rows=10, bytes=100) for group in range(3)},
    )
    some = after(before, shrunk={0: (4, 30)})
    assert (some.groups[0].rows, some.groups[0].bytes) == (6, 70)
    assert some.groups[1] == before.groups[1]
    gone = after(before, shrunk={0: (4, 30), 1: (4, 30), 2: (1, 1)}, replaced=(("a", 0b01),))
    assert [(state.rows, state.bytes) for state in gone.groups.values()] == [(0, 0), (6, 70), (0, 0)]


def test_a_cleaned_group_is_one_generation_on_disk_and_a_restored_one_in_memory() -> None:
    before = replace(
        EMPTY,
        runs={"a": run("a", live=0b11, spilled=0b100), "b": run("b", spilled=0b11)},
        groups={
            group: GroupState((0, 1), 5, 50, 2, spilled_bytes=30, spilled_results=1, spilled_rows=3)
            for group in range(2)
        },
    )
    done = after(before, cleaned=0b01, restored=0b10)
    assert (done.runs["a"].live, done.runs["a"].spilled) == (0b10, 0b101)
    assert (done.runs["b"].live, done.runs["b"].spilled) == (0b10, 0b01)
    cleaned, restored = done.groups[0], done.groups[1]
    assert (cleaned.ended, cleaned.rows, cleaned.spilled_bytes, cleaned.spilled_rows) == ((0,), 0, 80, 8)
    assert (restored.ended, restored.rows, restored.bytes, restored.spilled_rows) == ((), 8, 80, 0)
    assert (cleaned.born_epoch, restored.born_epoch, restored.results) == (1, 1, 3)
    assert done.split_groups == 0 and done.spilled_groups == 0b01
    cursor = Cursor(0b1, False)
    assert after(before, cursors=(cursor,)).cursors == (cursor,)


def test_a_group_is_split_between_two_generations_and_not_while_a_row_is_unfinished() -> None:
    states = {
        0: GroupState((0,)),
        1: GroupState((0, 1)),
        2: GroupState((0,), rows=1),
        3: GroupState(rows=5),
    }
    manifest = replace(EMPTY, groups=states)
    assert manifest.split_groups == 0b0110
    assert manifest.spilled_groups == 0b0111
    busy = replace(manifest, pending={0: (waiting(0b0100, emitted=1),), 1: (waiting(0b0011),)})
    assert busy.mid_row_groups == 0b0100
    assert busy.split_groups == 0b0010


def test_what_waits() -> None:
    queue = (waiting(0b0001), waiting(0b0010, earliest=10), waiting(0b0100, earliest=11))
    manifest = after(EMPTY, pending={0: queue, 1: (waiting(0b1000),), 2: ()}, watermark=11)
    assert manifest.pending == {0: queue, 1: (waiting(0b1000),)}
    assert manifest.waiting_groups == 0b1011
    assert replace(manifest, watermark=None).waiting_groups == 0b1001
    assert manifest.pending_rows == 28
    assert manifest.files() == {"pending/x"}
