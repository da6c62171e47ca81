"""The kinds of matches: which is chosen, and what values of matches take."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spillway.state.join.matches import Copied, InPlace, Located, Matches, matches_of
from spillway.state.join.search import Hits, search
from spillway.state.rows.hash_filter import HashFilter
from spillway.state.rows.sorted_rows import SortedRows

GROUPS = 4


def segment(values: pa.Array) -> SortedRows:
    """Row i has hash i // 2."""
    columns = pa.RecordBatch.from_arrays([values], names=["v"])
    return SortedRows(np.arange(len(values), dtype=np.int64) // 2, columns)


def matches(segments: list[SortedRows], needles: list[int], *, few: bool) -> Matches:
    hits = search(segments, np.array(needles, dtype=np.int64), GROUPS)
    return matches_of(segments, hits, len(needles), few=few)


@pytest.mark.parametrize(
    ("needles", "few", "kind"),
    [([2], True, InPlace), ([2], False, InPlace), ([0, 2], True, Copied), ([0, 2], False, Located)],
)
def test_matches_of_one_segment_stay_there(needles: list[int], few: bool, kind: type[Matches]) -> None:
    state = [segment(pa.array(range(2))), segment(pa.array(range(10, 16)))]
    found = matches(state, needles, few=few)
    assert isinstance(found, kind)
    assert found.few == (few and kind is not Located)
    positions = found.rows(np.full(2, len(needles) - 1), np.arange(2))
    assert found.column(0, positions).to_pylist() == [14, 15]


@pytest.mark.parametrize(
    ("values", "size"),
    [
        (pa.array([1, 2, 3, 4]), 8),
        (pa.array(["a" * 90, "a" * 90, "bb", "bbbb"]), 3 + 4),
        (pa.array([None, b"a" * 90, b"a", b"bb", b"bbbb"], pa.binary()).slice(1), 3 + 4),
    ],
)
def test_the_size_of_a_value_is_that_of_the_matches(values: pa.Array, size: float) -> None:
    found = matches([segment(values)], [1], few=True)
    assert isinstance(found, InPlace)
    assert found.value_bytes(0) == size


def test_nested_values_are_weighed_where_matches_are_few() -> None:
    state = [segment(pa.array([["a" * 90], ["a"], ["bb"], ["bbbb"]]))]
    assert matches(state, [1], few=True).value_bytes(0) < 20
    assert matches(state, [1], few=False).value_bytes(0) > 24


def test_needles_are_renumbered_or_left_out() -> None:
    hits = Hits(3, np.array([0, 2, 3]), np.array([5, 6, 8]), np.array([1, 2, 1]))
    fewer = hits.renumbered(np.array([0, -1, -1, 1]))
    assert fewer.segment == 3
    assert [fewer.needles.tolist(), fewer.lows.tolist(), fewer.counts.tolist()] == [[0, 1], [5, 8], [1, 1]]
    same = hits.renumbered(np.array([0, -1, 1, 2]))
    assert [same.needles.tolist(), same.lows.tolist(), same.counts.tolist()] == [
        [0, 1, 2],
        [5, 6, 8],
        [1, 2, 1],
    ]


def test_a_filter_saves_searches_only_where_needles_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def candidates(self: Any, lower: Any) -> Any:
        asked.append(len(lower))
        return np.arange(len(lower))

    monkeypatch.setattr(HashFilter, "candidates", candidates)
    hashes = np.arange(1_000, dtype=np.int64)
    state = SortedRows(hashes, segment(pa.array(hashes)).columns, filter=HashFilter.of(hashes))
    for needles in (255, 256):
        assert search([state], hashes[:needles], GROUPS)[0].counts.tolist() == [1] * needles
    assert asked == [256]
