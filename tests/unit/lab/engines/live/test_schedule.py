"""The schedule of a live run, and the writer that keeps it."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import JobError
from spillway.lab.engines.data import SHAPES
from spillway.lab.engines.live.feeder import feed
from spillway.lab.engines.live.live_run import LiveJob
from spillway.lab.engines.live.schedule import Schedule
from spillway.lab.engines.live.waiting_files import expected_sum, file_name, write_waiting


@given(
    rate=st.integers(1_000, 200_000),
    streams=st.sampled_from((2, 3)),
    interval_seconds=st.sampled_from((0.05, 0.1, 0.5)),
    warm_seconds=st.floats(0, 20),
    seconds=st.floats(1, 60),
)
def test_a_schedule_keeps_its_rate(
    rate: int, streams: int, interval_seconds: float, warm_seconds: float, seconds: float
) -> None:
    schedule = Schedule.at_rate(
        rate,
        streams=streams,
        interval_seconds=interval_seconds,
        warm_seconds=warm_seconds,
        seconds=seconds,
    )
    assert abs(schedule.rate - rate) <= streams / interval_seconds / 2 + 1e-6
    assert schedule.warm_drops * interval_seconds >= warm_seconds - 1e-6
    assert (schedule.drops - schedule.warm_drops) * interval_seconds >= seconds - 1e-6
    assert schedule.drop_of(schedule.rows_per_stream - 1) == schedule.drops - 1
    assert schedule.drop_of(schedule.rows_per_file) == 1 or schedule.drops == 1
    job = LiveJob("pair", "w", schedule, 7, 1.0)
    assert LiveJob.from_json(job.to_json()) == job


@pytest.mark.parametrize("rate", [0, 99, 1_000_001])
def test_a_rate_out_of_bounds_is_refused(rate: int) -> None:
    with pytest.raises(JobError, match=f"rate {rate}"):
        Schedule.at_rate(rate, streams=2, interval_seconds=0.1, warm_seconds=1, seconds=1)


def test_files_appear_when_they_are_due(tmp_path: Path) -> None:
    schedule = Schedule(2, 5, 0.05, 1, 4)
    shape = SHAPES["pair"]
    write_waiting(tmp_path / "waiting", shape, schedule)
    for stream in shape.streams:
        (tmp_path / "live" / stream).mkdir(parents=True)
    before = time.time()
    appeared = feed(tmp_path / "waiting", tmp_path / "live", list(shape.streams), 4, 0.05)
    assert set(appeared) == {"a", "b"} and all(len(times) == 4 for times in appeared.values())
    for number, moment in enumerate(appeared["a"]):
        file = tmp_path / "live" / "a" / file_name(number)
        assert before + number * 0.05 - 0.01 <= moment <= file.stat().st_ctime + 0.02
        assert file.stat().st_mtime == pytest.approx(moment, abs=0.02)
    assert expected_sum(tmp_path / "live", shape) == expected_sum(tmp_path / "waiting", shape)
    assert expected_sum(tmp_path / "waiting", shape).rows > 0
