"""What may leave state when time goes on: each rule at its boundary."""

import numpy as np
import pyarrow as pa
import pytest

from spillway.model.window import Window
from spillway.state.rows.expiry import NEVER, Expiry, expired_slices, lagging_groups, next_watermark, youngest
from spillway.state.rows.group import group_starts
from spillway.state.rows.run import EventTimes, Position, Run
from spillway.state.rows.sorted_rows import SortedRows

GROUPS = 4
WINDOW = Window(column=1, range_us=10, lateness_us=3)
ENDLESS = Window(column=0, range_us=None, lateness_us=5)
WINDOWS = (WINDOW, ENDLESS)


def segment(*times: int, group: int = 0) -> SortedRows:
    hashes = np.full(len(times), group_starts(GROUPS)[group], dtype=np.int64)
    numbers = pa.array(range(len(times)), pa.int64())
    return SortedRows(hashes, pa.record_batch({"id": numbers, "t": pa.array(times, pa.int64())}))


def run(
    times: tuple[int, int, int] | None, *, live: int = 0b1, spilled: int = 0, input_: int = 0, name: str = "r"
) -> Run:
    noted = None if times is None else EventTimes(*times)
    return Run(name, input_, Position(0), 0, 1, 1, 1, live, spilled, noted)


def test_the_cutoff_is_the_range_before_the_watermark() -> None:
    assert Expiry(WINDOWS, 100).cutoff(0) == 90
    assert Expiry(WINDOWS, 0).cutoff(0) == -10
    assert Expiry(WINDOWS, 100).cutoff(1) == NEVER
    assert Expiry(WINDOWS, None).cutoff(0) == NEVER
    assert Expiry((), 100).cutoff(0) == NEVER
    assert [Expiry(WINDOWS).can_expire(n) for n in (0, 1)] == [True, False]
    assert not Expiry().can_expire(0)


def test_rows_older_than_the_cutoff_leave() -> None:
    rows = segment(89, 90, 91, 5)
    left = Expiry(WINDOWS, 100).unexpired(0, rows, GROUPS)
    assert left.columns.column("t").to_pylist() == [90, 91]
    assert left.columns.column("id").to_pylist() == [1, 2]
    assert left.hashes.tolist() == rows.hashes[:2].tolist()


@pytest.mark.parametrize(
    ("expiry", "number", "rows"),
    [
        (Expiry(WINDOWS, 100), 0, segment(90, 95)),
        (Expiry(WINDOWS, 100), 0, segment()),
        (Expiry(WINDOWS, None), 0, segment(1)),
        (Expiry(WINDOWS, 100), 1, segment(1)),
        (Expiry(WINDOWS, 100, keep=0b1), 0, segment(1)),
    ],
)
def test_a_segment_of_which_all_stays_is_not_copied(expiry: Expiry, number: int, rows: SortedRows) -> None:
    assert expiry.unexpired(number, rows, GROUPS) is rows


def test_groups_that_keep_all_keep_all_and_others_do_not() -> None:
    old, kept = segment(1, 95, group=1), segment(1, 95, group=2)
    both = SortedRows(
        np.concatenate([old.hashes, kept.hashes]),
        pa.Table.from_batches([old.columns, kept.columns]).combine_chunks().to_batches()[0],
    )
    left = Expiry(WINDOWS, 100, keep=0b100).unexpired(0, both, GROUPS)
    assert left.columns.column("t").to_pylist() == [95, 1, 95]


def test_a_run_notes_its_times_and_what_was_left_out() -> None:
    assert Expiry(WINDOWS, 100).times(0, segment(95, 91, 93)) == EventTimes(91, 95, 90)
    assert Expiry(WINDOWS, None).times(0, segment(4)) == EventTimes(4, 4, NEVER)
    assert Expiry(WINDOWS, 100).times(0, segment()) is None
    assert Expiry((), 100).times(0, segment(4)) is None


@pytest.mark.parametrize(
    ("candidate", "worth"),
    [
        (run((80, 100, NEVER)), False),  # exactly half
        (run((79, 100, NEVER)), True),
        (run((79, 101, NEVER)), False),
        (run((0, 100, 80)), False),  # what is older was left out before
        (run((0, 100, 79)), True),
        (run((85, 85, NEVER)), True),  # a single time
        (run((85, 85, 85)), True),
        (run((80, 84, 85)), False),  # all of it was left out before, save groups that keep all
        (run((90, 90, NEVER)), False),
        (run(None), False),
        (run((0, 1, NEVER), input_=1), False),  # of an input that never expires
        (run((0, 1, NEVER), live=0b100), False),  # of a group that keeps all
        (run((0, 1, NEVER), live=0b101), True),
        (run((0, 1, NEVER), live=0), False),
    ],
)
def test_a_run_is_rewritten_when_more_than_half_of_its_time_is_past(candidate: Run, worth: bool) -> None:
    assert Expiry(WINDOWS, 100, keep=0b100).due(candidate) is worth


def test_a_run_is_past_when_its_youngest_row_is() -> None:
    expiry = Expiry(WINDOWS, 100, keep=0b100)
    assert expiry.fully_expired(run((0, 89, NEVER)))
    assert not expiry.fully_expired(run((0, 90, NEVER)))
    assert not expiry.fully_expired(run((0, 89, NEVER), live=0b101))
    assert not expiry.fully_expired(run(None))
    assert not expiry.fully_expired(run((0, 89, NEVER), input_=1))


def test_slices_on_disk_expire_in_whole_groups() -> None:
    runs = [
        run((0, 89, NEVER), live=0, spilled=0b111, name="past"),
        run((0, 90, NEVER), live=0, spilled=0b111, name="needed"),
        run((0, 89, NEVER), live=0b1, spilled=0b100, name="of a split group"),
        run((0, 89, NEVER), live=0b11, name="in memory"),
    ]
    assert expired_slices(runs, Expiry(WINDOWS, 100), 0b011) == (("past", 0b011),)
    assert expired_slices(runs, Expiry(WINDOWS, None), 0b011) == ()


def test_a_group_lags_when_all_of_it_that_can_expire_is_past() -> None:
    expiry = Expiry(WINDOWS, 100)
    past = run((0, 89, NEVER), live=0, spilled=0b0111)
    needed = run((0, 90, NEVER), live=0, spilled=0b0010)
    endless = run((0, 1, NEVER), live=0, spilled=0b1100, input_=1)
    assert lagging_groups([past], expiry) == 0b0111
    assert lagging_groups([past, needed], expiry) == 0b0101
    assert lagging_groups([past, needed, endless], expiry) == 0b0101
    assert lagging_groups([endless], expiry) == 0


def test_the_youngest_row_of_each_input_in_all_reports() -> None:
    assert youngest([(5, None), (7, None), ()], 2) == (7, None)
    assert youngest([(None, 4), (3,)], 2) == (3, 4)
    assert youngest([], 2) == (None, None)
    assert youngest([(1, 2, 3)], 3) == (1, 2, 3)


def test_the_watermark_is_the_slowest_source_minus_its_lateness_and_never_goes_back() -> None:
    assert next_watermark(None, (100, 90), WINDOWS, ended=False) == 85
    assert next_watermark(None, (80, 90), WINDOWS, ended=False) == 77
    assert next_watermark(80, (80, 90), WINDOWS, ended=False) == 80
    assert next_watermark(70, (80, 90), WINDOWS, ended=False) == 77
    assert next_watermark(70, (80, None), WINDOWS, ended=False) == 70
    assert next_watermark(None, (80, None), WINDOWS, ended=False) is None
    assert next_watermark(70, (80,), WINDOWS, ended=False) == 70
    assert next_watermark(70, (), (), ended=False) == 70


def test_at_the_end_of_the_input_every_row_is_past() -> None:
    assert next_watermark(None, (100, 90), WINDOWS, ended=True) == 91
    assert next_watermark(95, (100, 90), WINDOWS, ended=True) == 95


def test_results_of_other_joins_say_nothing_about_the_watermark() -> None:
    derived = Window(column=0, range_us=0, lateness_us=0, derived=True)
    assert next_watermark(None, (100, 1), (WINDOW, derived), ended=False) == 97
    assert next_watermark(None, (100, None), (WINDOW, derived), ended=False) == 97
    assert next_watermark(7, (100,), (derived,), ended=False) == 7
