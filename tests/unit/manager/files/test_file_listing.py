"""Which files are listed: hidden names, directories that are columns, patterns, order; and what is cached."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs as arrow_fs

from spillway.errors import SourceError
from spillway.manager.files.glob import PatternError, compiled, escaped, segments
from spillway.manager.files.listing import FileListing
from spillway.manager.files.options import ListingOptions, milliseconds, read_options
from spillway.manager.files.tree import SETTLED_SECONDS, ArrowTree, FileTree, LocalTree


@dataclass(slots=True)
class StoppedClock:
    now: float

    def wall(self) -> float:
        return self.now

    def seconds(self) -> float:
        return self.now


def write(root: Path, *names: str) -> None:
    """Files of increasing age: the first is the oldest."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, (number + 1, number + 1))


def listed(
    root: Path, options: dict[str, str] | None = None, path: str = "", tree: FileTree | None = None
) -> list[str]:
    read = read_options({"path": f"{root}{path}", **(options or {})})
    assert read is not None
    files = FileListing(read, tree or LocalTree()).files()
    return [entry.path.removeprefix(f"{root}/") for entry in files]


def test_hidden_names_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "b", "_x", ".y", "a", "c._COPYING_", "_k=1")
    assert listed(tmp_path) == ["b", "a", "_k=1"]


def test_files_of_one_time_come_by_path(tmp_path: Path) -> None:
    write(tmp_path, "b", "c", "a")
    for path in tmp_path.iterdir():
        os.utime(path, (7, 7))
    assert listed(tmp_path) == ["a", "b", "c"]
    assert listed(tmp_path, {"latestfirst": "true"}) == ["c", "b", "a"]


def test_newest_first(tmp_path: Path) -> None:
    write(tmp_path, "b", "c", "a")
    assert listed(tmp_path, {"latestfirst": "TRUE"}) == ["a", "c", "b"]


def test_only_files_directly_inside_without_columns(tmp_path: Path) -> None:
    write(tmp_path, "a", "x/b", "x/y/c")
    assert listed(tmp_path) == ["a"]
    assert listed(tmp_path, {"recursivefilelookup": "true"}) == ["a", "x/b", "x/y/c"]


def test_directories_that_are_columns(tmp_path: Path) -> None:
    write(tmp_path, "k=1/x=a%20b/f", "k=2/x=c/g", "k=2/x=c/_hidden", "k=2/x=c/deep/h")
    read = read_options({"path": str(tmp_path)})
    assert read is not None
    files = FileListing(read, LocalTree()).files()
    assert [entry.partitions for entry in files] == [
        (("k", "1"), ("x", "a b")),
        (("k", "2"), ("x", "c")),
        (("k", "2"), ("x", "c")),
    ]
    assert listed(tmp_path, {"recursivefilelookup": "true"}) == listed(tmp_path)


@pytest.mark.parametrize("other", ["f", "x=1/f", "k=1/x=1/f", "x/k=1/f"])
def test_directories_of_different_kinds_are_refused(tmp_path: Path, other: str) -> None:
    write(tmp_path, "k=1/f", other)
    with pytest.raises(SourceError, match="do not name the same columns"):
        listed(tmp_path)


def test_a_break_in_the_columns_begins_anew(tmp_path: Path) -> None:
    write(tmp_path, "k=1/x/j=2/f")
    read = read_options({"path": str(tmp_path)})
    assert read is not None
    (entry,) = FileListing(read, LocalTree()).files()
    assert entry.partitions == (("j", "2"),)


def test_names_that_match(tmp_path: Path) -> None:
    write(tmp_path, "a1.parquet", "a2.csv", "b1.parquet")
    assert listed(tmp_path, {"pathglobfilter": "a*.{parquet,csv}"}) == ["a1.parquet", "a2.csv"]


def test_patterns_are_roots(tmp_path: Path) -> None:
    write(tmp_path, "d1/a", "d2/b", "d2/sub/c", "e1/d", "k=1/f", "k=2/g")
    assert listed(tmp_path, path="/d*") == ["d1/a", "d2/b"]
    assert listed(tmp_path, path="/d?/[ab]") == ["d1/a", "d2/b"]
    assert listed(tmp_path, path="/k=*") == ["k=1/f", "k=2/g"]
    read = read_options({"path": f"{tmp_path}/k=*", "basepath": str(tmp_path)})
    assert read is not None
    assert [entry.partitions for entry in FileListing(read, LocalTree()).files()] == [
        (("k", "1"),),
        (("k", "2"),),
    ]
    without = read_options({"path": f"{tmp_path}/k=*"})
    assert without is not None
    assert [entry.partitions for entry in FileListing(without, LocalTree()).files()] == [(), ()]


def test_a_single_file_and_a_path_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path, "a")
    assert listed(tmp_path, path="/a") == ["a"]
    assert listed(tmp_path, path="/b") == []


def test_what_a_stream_of_spark_wrote_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a", "_spark_metadata/0")
    with pytest.raises(SourceError, match="_spark_metadata"):
        listed(tmp_path)


NAMES = st.sampled_from(["a", "b", "_c", ".d", "k=1", "k=2", "_j=3", "x", "e._COPYING_"])


@given(st.sets(st.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=6), st.booleans())
def test_pyarrow_lists_the_same(
    quick_directory: object, paths: set[tuple[str, ...]], recursive: bool
) -> None:
    root: Path = quick_directory()  # type: ignore[operator]
    kept = [path for path in sorted(paths) if not any(path != p and p[: len(path)] == path for p in paths)]
    write(root, *("/".join(path) for path in kept))
    options = {"recursivefilelookup": str(recursive)}
    arrow = ArrowTree(arrow_fs.LocalFileSystem(), "")

    def told(tree: FileTree) -> object:
        try:
            return listed(root, options, tree=tree)
        except SourceError as error:
            return type(error)

    assert told(LocalTree()) == told(arrow)


def test_a_directory_that_has_settled_is_not_read_again(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    os.utime(tmp_path, (100, 100))
    clock = StoppedClock(100 + SETTLED_SECONDS + 1)
    tree = LocalTree(clock)
    listing = FileListing(ListingOptions(str(tmp_path)), tree)
    first = listing.files()
    assert listing.files() is first
    (tmp_path / "c").write_text("")
    assert len(listing.files()) == 3  # its time has changed
    os.utime(tmp_path, (100, 100))
    (tmp_path / "a").write_text("longer than before")  # not noticed by the directory
    before = listing.files()
    (tmp_path / "d").write_text("")
    os.utime(tmp_path, (100, 100))  # a file system that does not keep the time
    assert listing.files() is before
    clock.now += 6
    assert len(listing.files()) == 4


def test_a_directory_that_has_just_changed_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, "a")
    os.utime(tmp_path, (100, 100))
    tree = LocalTree(StoppedClock(100 + SETTLED_SECONDS / 2))
    first = tree.children(str(tmp_path))
    (tmp_path / "b").write_text("")
    os.utime(tmp_path, (100, 100))
    assert len(tree.children(str(tmp_path))) == len(first) + 1


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*", ["", "a", ".a"], []),
        ("a?", ["ab"], ["a", "abc"]),
        ("[a-c]1", ["a1", "c1"], ["d1", "-1"]),
        ("[^a]1", ["b1"], ["a1"]),
        ("{a,b*}.x", ["a.x", "bcd.x"], ["c.x"]),
        ("a\\*", ["a*"], ["ab"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"], ["b", "ad"]),
        ("a+(b)|c", ["a+(b)|c"], ["aab"]),
    ],
)
def test_patterns_of_hadoop(pattern: str, matching: list[str], others: list[str]) -> None:
    matches = compiled(pattern).fullmatch
    assert [name for name in [*matching, *others] if matches(name)] == matching


@given(
    st.text(st.sampled_from("ab[]{}*?\\,^-"), max_size=8),
    st.text(st.sampled_from("ab[]{}*?\\,^-"), max_size=8),
)
def test_an_escaped_name_stands_for_itself(name: str, other: str) -> None:
    matches = compiled(escaped(name)).fullmatch
    assert matches(name)
    assert bool(matches(other)) == (name == other)


@pytest.mark.parametrize("pattern", ["[a", "{a", "a\\"])
def test_patterns_that_are_left_to_spark(pattern: str) -> None:
    with pytest.raises(PatternError):
        compiled(pattern)


def test_alternatives_with_a_slash_are_left_to_spark() -> None:
    with pytest.raises(PatternError):
        segments("/x/{a/b,c}")


@pytest.mark.parametrize(
    "options",
    [
        {"path": "relative"},
        {"path": "/a//b"},
        {"path": "/a/../b"},
        {"path": "hdfs://host/a"},
        {"path": "/a", "maxfilespertrigger": "0"},
        {"path": "/a", "maxfilespertrigger": "x"},
        {"path": "/a", "maxfilespertrigger": "1", "maxbytespertrigger": "1"},
        {"path": "/a", "maxfileage": "1 day"},
        {"path": "/a", "latestfirst": "yes"},
        {"path": "/a", "basepath": "/"},
        {"path": "/a/*", "basepath": "/b"},
        {"path": "/a/[b"},
        {},
    ],
)
def test_options_that_are_left_to_spark(options: dict[str, str]) -> None:
    assert read_options(options) is None


def test_options() -> None:
    assert read_options(
        {"path": "file:///a/", "maxfileage": "2h", "maxbytespertrigger": "7"}
    ) == ListingOptions("/a", max_age_ms=7_200_000, max_bytes=7)
    newest = read_options(
        {"path": "/a", "latestfirst": "true", "maxfilespertrigger": "3", "maxfileage": "1s"}
    )
    assert newest == ListingOptions("/a", latest_first=True, max_files=3)  # an age would lose files
    week = read_options({"path": "/a"})
    assert week is not None and week.max_age_ms == 7 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 500), ("10 seconds", 10_000), ("1 minute", 60_000), ("7d", 604_800_000), ("2 H", 7_200_000)],
)
def test_lengths_of_time(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "five s", "1 minute 30 seconds", "-1s"])
def test_no_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        milliseconds(text)
