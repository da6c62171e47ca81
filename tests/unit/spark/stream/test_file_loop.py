"""The loop over files without Spark: what it gives out, when it looks again, and how it ends."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spillway.errors import SourceError
from spillway.manager.files.entry import FileBatch
from spillway.manager.files.log import FileLog
from spillway.manager.files.options import ListingOptions
from spillway.manager.files.planner import FilePlanner, ListedInput
from spillway.manager.files.tree import LocalTree
from spillway.spark.stream.file_loop import FileLoop, Pace
from spillway.spark.stream.input import InputBatch
from spillway.state.storage.storage import Storage

WAIT_SECONDS = 20


class Run:
    """A loop over `a`, and what it gave out."""

    def __init__(
        self, root: Path, pace: Pace | None = None, *, max_files: int | None = None, **named: Any
    ) -> None:
        self.root = root
        (root / "a").mkdir(exist_ok=True)
        inputs = [ListedInput("a", "json", ListingOptions(str(root / "a"), max_files=max_files), LocalTree())]
        log = FileLog(Storage(str(root / "state")), 1, ["a"])
        self.committed = -1
        self.given: list[list[str]] = []
        self.framed: list[int] = []
        self.before: Callable[[InputBatch], None] = lambda batch: None
        planner = FilePlanner(inputs, log, log.load(-1, 0), -1, None)
        self.offered: list[Any] = []
        reader: Any = self  # makes rows and frames
        self.loop = FileLoop(planner, reader, lambda: self.committed, self.offered.append, pace, **named)

    def rows_of(self, batch: FileBatch) -> Any:
        self.framed.append(batch.batch_id)
        return batch.batch_id

    def frame_of(self, batch: FileBatch) -> Any:
        raise AssertionError("nobody asked for a plan")

    def write(self, *names: str) -> None:
        for number, name in enumerate(names):
            made = self.root / f"making-{name}"
            made.write_text(name)
            os.utime(made, (number + 1, number + 1))
            made.rename(self.root / "a" / name)

    def on_batch(self, batch: InputBatch) -> int:
        self.before(batch)
        assert batch.files is not None
        self.given.append([Path(entry.path).name for entry in batch.files.files[0]])
        assert self.loop.of(batch.batch_id, 0, 0)[0].startswith("file:///")
        self.committed = batch.batch_id
        return 1

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self.loop.run, args=(self.on_batch,), daemon=True)
        thread.start()
        return thread


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_files_that_are_there_at_the_start(tmp_path: Path) -> None:
    run = Run(tmp_path, max_files=2)
    run.write("1", "2", "3", "4", "5")
    run.before = lambda _: run.write("late")
    run.loop.run(run.on_batch)
    assert run.given == [["1", "2"], ["3", "4"], ["5"]]
    assert run.framed == run.offered == [0, 1, 2]
    run.loop.stop()
    assert not run.loop.is_cut  # it had come to its end


def test_the_next_batch_is_planned_while_one_is_worked_at(tmp_path: Path) -> None:
    run = Run(tmp_path, max_files=1)
    run.write("1", "2")
    record = tmp_path / "state" / "files" / "000000000001.000001.0.json"
    run.before = lambda _: wait_for(record.exists)
    run.loop.run(run.on_batch)
    assert run.given == [["1"], ["2"]]


def test_nothing_to_read(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.loop.run(run.on_batch)
    assert run.given == []
    assert not run.loop.is_cut


def test_stop_between_two_batches(tmp_path: Path) -> None:
    run = Run(tmp_path, max_files=1)
    run.write("1", "2", "3")
    run.before = lambda batch: run.loop.stop() if batch.batch_id == 1 else None
    run.loop.run(run.on_batch)
    assert run.given == [["1"], ["2"]]
    assert run.loop.is_cut


def test_an_error_ends_the_loop(tmp_path: Path) -> None:
    run = Run(tmp_path, max_files=1)
    run.write("1", "2")

    def fail(_: InputBatch) -> None:
        raise SourceError("bad rows")

    run.before = fail
    with pytest.raises(SourceError, match="bad rows"):
        run.loop.run(run.on_batch)


def test_a_file_that_vanishes_while_another_is_read(tmp_path: Path) -> None:
    run = Run(tmp_path, max_files=1)
    run.write("1", "2")
    run.before = lambda _: (tmp_path / "a" / "2").unlink()
    with pytest.raises(SourceError, match="/a/2 is gone"):
        run.loop.run(run.on_batch)
    assert run.given == [["1"]]


@pytest.mark.parametrize("trigger", [None, 0.02])
def test_a_live_loop_reads_what_comes(tmp_path: Path, trigger: float | None) -> None:
    run = Run(tmp_path, Pace(trigger))
    thread = run.start()
    wait_for(lambda: run.loop.is_waiting)
    run.write("1")
    wait_for(lambda: len(run.given) == 1)
    run.write("2")
    run.loop.process_all_available(thread.is_alive)
    assert run.given == [["1"], ["2"]]
    run.loop.process_all_available(thread.is_alive)
    run.loop.stop()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
    assert run.loop.is_cut
    run.loop.process_all_available(thread.is_alive)


def test_stop_wakes_a_loop_that_waits_for_its_trigger(tmp_path: Path) -> None:
    run = Run(tmp_path, Pace(3600))
    thread = run.start()
    wait_for(lambda: run.loop.is_waiting)
    run.loop.stop()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()


def test_pauses_grow_while_nothing_comes() -> None:
    pace, pauses = Pace(), [0.0]
    for _ in range(6):
        pauses.append(pace.pause(pauses[-1], 0.0))
    assert pauses[1:] == [0.01, 0.02, 0.04, 0.08, 0.1, 0.1]
    assert pace.pause(0.0, 3.0) == 3.0  # a listing that takes long is not repeated at once


def test_beats_are_multiples_of_the_trigger() -> None:
    assert Pace(10).next_beat(1003.0) == 1010.0
    assert Pace(10).next_beat(1010.0) == 1020.0


def test_explain_before_the_first_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Run(tmp_path).loop.explain(False)
    assert "Waiting for data" in capsys.readouterr().out
