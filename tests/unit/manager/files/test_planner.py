"""Batches of files: each file once and in order, within limits; what changed is refused by name."""

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import SourceError
from spillway.manager.files.choice import FIRST_FILES, WINDOW, chosen
from spillway.manager.files.entry import FileBatch, FileEntry
from spillway.manager.files.log import FileLog
from spillway.manager.files.options import ListingOptions
from spillway.manager.files.planner import FilePlanner, ListedInput
from spillway.manager.files.row_estimate import RowEstimate, sampled_ratio
from spillway.manager.files.tree import LocalTree
from spillway.policy.epoch_size import MeasuredEpoch, SizeLimits
from spillway.state.storage.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = st.lists(st.integers(0, 50), max_size=12)


def entries(name: str, sizes: list[int]) -> list[FileEntry]:
    return [FileEntry(f"/{name}/{number}", size, number) for number, size in enumerate(sizes)]


def by_size(_: int, entry: FileEntry) -> float:
    return float(entry.size_bytes)


@given(st.lists(SIZES, min_size=1, max_size=3), st.integers(1, 100), st.none() | st.integers(1, 100))
def test_all_files_are_chosen_once_and_in_order(
    inputs: list[list[int]], most_rows: int, most_bytes: int | None
) -> None:
    waiting = [entries(str(number), sizes) for number, sizes in enumerate(inputs)]
    options = [ListingOptions("/")] * len(inputs)
    taken: list[list[FileEntry]] = [[] for _ in inputs]
    left = [list(files) for files in waiting]
    while any(left):
        files = chosen(options, left, by_size, most_rows, most_bytes)
        count = sum(map(len, files))
        assert count
        rows = sum(max(entry.size_bytes, 1) for of in files for entry in of)
        only_first = all(len(of) <= 1 for of in files)
        assert count == 1 or rows <= most_rows or (only_first and rows <= FIRST_FILES * most_rows)
        assert count == 1 or most_bytes is None or sum(e.size_bytes for of in files for e in of) <= most_bytes
        for number, of in enumerate(files):
            taken[number] += of
            left[number] = left[number][len(of) :]
    assert taken == waiting


def test_inputs_keep_step() -> None:
    waiting = [entries("a", [10] * 100), entries("b", [1] * 10)]
    options = [ListingOptions("/")] * 2
    files = chosen(options, waiting, by_size, 505, None)
    assert [len(of) for of in files] == [50, 5]


def test_a_batch_has_the_first_file_of_every_input() -> None:
    waiting = [entries(name, [100] * 5) for name in "abc"]
    options = [ListingOptions("/")] * 3
    assert [len(of) for of in chosen(options, waiting, by_size, 100, None)] == [1, 1, 1]
    assert [len(of) for of in chosen(options, waiting, by_size, 60, None)] == [1, 1, 0]
    assert [len(of) for of in chosen(options, waiting, by_size, 100, 200)] == [1, 1, 0]


def test_limits_of_sources_win() -> None:
    waiting = [entries("a", [10] * 9), entries("b", [10] * 9), entries("c", [99, 1])]
    options = [
        ListingOptions("/", max_files=4),
        ListingOptions("/", max_bytes=25),
        ListingOptions("/", max_bytes=5),
    ]
    assert [len(of) for of in chosen(options, waiting, by_size, 1, 1)] == [4, 2, 1]


def test_without_bounds_everything_is_taken() -> None:
    assert [
        len(of) for of in chosen([ListingOptions("/")], [entries("a", [9] * 7)], by_size, None, None)
    ] == [7]


def write(path: Path, text: str, seconds: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (seconds, seconds))


def planner(
    root: Path,
    *options: ListingOptions,
    token: int = 1,
    done: int = -1,
    done_by: int = 1,
    limits: SizeLimits | None = None,
) -> FilePlanner:
    storage = Storage(str(root / "state"))
    inputs = [ListedInput(Path(of.path).name, "json", of, LocalTree()) for of in options]
    log = FileLog(storage, token, [input_.name for input_ in inputs])
    return FilePlanner(inputs, log, log.load(done, done_by), done, limits)


def names(batch: FileBatch | None) -> list[list[str]]:
    assert batch is not None
    return [[Path(entry.path).name for entry in files] for files in batch.files]


def test_a_restart_goes_on_after_the_last_committed_batch(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / "a" / str(number), "x", number)
    options = ListingOptions(str(tmp_path / "a"), max_files=2)
    first = planner(tmp_path, options)
    first.refresh()
    assert names(first.plan(-1, live=False)) == [["0", "1"]]
    assert names(first.plan(-1, live=False)) == [["2", "3"]]  # ahead, and lost
    second = planner(tmp_path, options, token=2, done=0)
    second.refresh()
    assert names(second.plan(0, live=False)) == [["2", "3"]]
    assert names(second.plan(0, live=False)) == [["4"]]
    assert second.plan(2, live=False) is None


def test_a_file_that_was_read_and_has_changed_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "a" / "f", "x", 1)
    made = planner(tmp_path, ListingOptions(str(tmp_path / "a")))
    made.refresh()
    made.plan(-1, live=True)
    write(tmp_path / "a" / "g", "y", 2)
    write(tmp_path / "a" / "f", "longer", 1)
    with pytest.raises(
        SourceError, match=r"\[sources\.a\] file .*/a/f was read with 1 bytes .* now it has 6 bytes"
    ):
        made.refresh()
    write(tmp_path / "a" / "f", "x", 3)
    again = planner(tmp_path, ListingOptions(str(tmp_path / "a")), token=2, done=0)
    with pytest.raises(SourceError, match="was read with 1 bytes of 1970-01-01T00:00:01"):
        again.refresh()


@pytest.mark.parametrize(
    ("change", "told"), [(None, "is gone; put it back"), ("longer", "has changed while")]
)
def test_a_file_that_changes_before_it_is_read_is_refused_by_name(
    tmp_path: Path, change: str | None, told: str
) -> None:
    write(tmp_path / "a" / "f", "x", 1)
    made = planner(tmp_path, ListingOptions(str(tmp_path / "a")))
    made.refresh()
    batch = made.plan(-1, live=False)
    assert batch is not None
    made.check(batch)
    if change is None:
        (tmp_path / "a" / "f").unlink()
    else:
        write(tmp_path / "a" / "f", change, 1)
    with pytest.raises(SourceError, match=told):
        made.check(batch)


def test_files_that_are_too_old_are_ignored(tmp_path: Path) -> None:
    options = ListingOptions(str(tmp_path / "a"), max_age_ms=10_000)
    write(tmp_path / "a" / "old", "x", 1)
    write(tmp_path / "a" / "new", "x", 100)
    made = planner(tmp_path, options)
    made.refresh()
    assert names(made.plan(-1, live=True)) == [["old", "new"]]  # nothing newer was read before
    write(tmp_path / "a" / "late", "x", 89)
    write(tmp_path / "a" / "in time", "x", 90)
    made.refresh()
    assert names(made.plan(0, live=True)) == [["in time"]]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(1, 400)), max_size=12),
    st.lists(st.sampled_from(["plan", "commit", "die", "refresh"]), max_size=25),
    st.integers(1, 300),
)
def test_every_file_is_in_one_committed_batch(
    quick_directory: "Callable[[], Path]",
    files: list[tuple[str, int, int]],
    steps: list[str],
    most_rows: int,
) -> None:
    root = quick_directory()
    arriving = iter(files)
    for name in "ab":
        (root / name).mkdir()
    options = [ListingOptions(str(root / name)) for name in "ab"]
    limits = SizeLimits(most_rows, 0.5, first_rows=most_rows)
    token, done_by, committed, planned = 1, 1, 0, []
    counted: Counter[str] = Counter()
    made = planner(root, *options, limits=limits)
    for number, step in enumerate([*steps, "die", "refresh", *["plan", "commit"] * 30]):
        if step == "refresh":
            for name, second, size in (file for file, _ in zip(arriving, range(4), strict=False)):
                if not (root / name / str(number)).exists():
                    write(root / name / f"{number}-{size}", "\n" * size, second)
            made.refresh()
        elif step == "plan" and (batch := made.plan(committed - 1, live=False)) is not None:
            planned.append(batch)
        elif step == "commit" and planned:
            done = planned.pop(0)
            assert done.batch_id == committed
            committed += 1
            done_by = token
            counted.update(entry.path for of in done.files for entry in of)
            made.learn(done, MeasuredEpoch(done.size_bytes, 0.1))
        elif step == "die":
            token, planned = token + 1, []
            made = planner(root, *options, token=token, done=committed - 1, done_by=done_by, limits=limits)
    on_disk = {str(path) for name in "ab" for path in (root / name).iterdir()}
    assert set(counted.values()) <= {1}
    assert set(counted) == on_disk


def test_rows_per_byte(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": list(range(1000))}), tmp_path / "p")
    size = (tmp_path / "p").stat().st_size
    assert sampled_ratio("parquet", FileEntry(str(tmp_path / "p"), size, 0)) == 1000 / size
    write(tmp_path / "t", "abc\n" * 50_000, 1)
    assert sampled_ratio("csv", FileEntry(str(tmp_path / "t"), 200_000, 0)) == pytest.approx(0.25)
    assert sampled_ratio("parquet", FileEntry(str(tmp_path / "t"), 9, 0)) == 1 / 64
    assert sampled_ratio("orc", FileEntry(str(tmp_path / "gone"), 9, 0)) == 1 / 64


def test_estimates_follow_what_epochs_had() -> None:
    batch = FileBatch(0, (tuple(entries("a", [100, 100])),))
    estimate = RowEstimate((0.5,))
    assert estimate.rows(batch) == 100
    for _ in range(20):
        estimate = estimate.learned(batch, 10)
    assert estimate.rows(batch) == pytest.approx(10, rel=0.01)
    assert estimate.learned(batch, 0) == estimate


def test_a_long_backlog_is_not_looked_at_whole() -> None:
    waiting = [entries("a", [10] * 3 * WINDOW), entries("b", [10] * 300)]
    looked: list[FileEntry] = []

    def rows_of(_: int, entry: FileEntry) -> float:
        looked.append(entry)
        return 10.0

    files = chosen([ListingOptions("/")] * 2, waiting, rows_of, 10_100, None)
    assert [len(of) for of in files] == [1_000, 10]
    assert len(looked) == WINDOW + 100
