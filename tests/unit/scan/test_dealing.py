"""Every row group is dealt once, evenly by bytes, and always in the same way."""

from hypothesis import given
from hypothesis import strategies as st

from spillway.scan import PARQUET, Split, deal


def split(path: str, group: int, size: int) -> Split:
    return Split(0, path, PARQUET, (group,), 1, size, 100)


@st.composite
def splits(draw: st.DrawFn) -> list[Split]:
    files = draw(st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=4))
    return [split(f"f{n}", group, size) for n, sizes in enumerate(files) for group, size in enumerate(sizes)]


@given(splits(), st.integers(1, 5))
def test_every_row_group_is_dealt_once_and_shares_are_even(given_: list[Split], tasks: int) -> None:
    dealt = deal(given_, tasks)
    assert len(dealt) == tasks
    found = [(part.path, group) for parts in dealt for part in parts for group in part.groups]
    assert sorted(found) == sorted((part.path, part.groups[0]) for part in given_)
    for parts in dealt:
        assert [part.path for part in parts] == sorted({part.path for part in parts})
        assert all(list(part.groups) == sorted(part.groups) for part in parts)
        assert all(part.rows == len(part.groups) for part in parts)
    loads = [sum(part.bytes for part in parts) for parts in dealt]
    largest = max((part.bytes for part in given_), default=0)
    assert sum(loads) == sum(part.bytes for part in given_)
    assert max(loads) - min(loads) <= largest
    assert deal(given_, tasks) == dealt


def test_a_row_group_larger_than_a_share_stays_whole() -> None:
    large, *small = [split("f", 0, 90), split("f", 1, 5), split("g", 0, 5)]
    assert deal([large, *small], 2) == [[large], small]


def test_the_largest_goes_first() -> None:
    parts = [split(name, 0, size) for name, size in (("e", 1), ("f", 1), ("g", 2))]
    assert deal(parts, 2) == [[parts[2]], parts[:2]]


def test_files_with_other_partition_values_stay_apart() -> None:
    parts = [Split(0, "f", PARQUET, (0,), 1, 1, 9, (("p", text),)) for text in "ab"]
    assert deal(parts, 1) == [parts]


def test_a_file_that_two_inputs_read_is_read_for_each() -> None:
    parts = [Split(tag, "f", PARQUET, (0,), 1, 1, 9) for tag in (0, 1)]
    assert deal(parts, 1) == [parts]
