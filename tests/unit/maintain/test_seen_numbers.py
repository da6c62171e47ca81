"""Which numbers were seen: against a set, in any order of commits."""

import duckdb
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spillway.maintain.sources.seen_numbers import SeenNumbers


@given(st.lists(st.sets(st.integers(1, 40), max_size=8), max_size=6))
def test_seen_numbers_are_the_union_of_what_came(batches: list[set[int]]) -> None:
    seen, truth = SeenNumbers(), set[int]()
    for batch in batches:
        seen = seen.with_numbers(np.array(sorted(batch - truth, key=hash), dtype=np.int64))
        truth |= batch
    assert truth == {
        n for n in range(1, seen.high + 1) if not any(first <= n <= last for first, last in seen.missing)
    }
    assert all(first <= last < seen.high for first, last in seen.missing)


def test_the_condition_in_sql() -> None:
    seen = SeenNumbers().with_numbers(np.array([2, 3, 7, 9]))
    with duckdb.connect() as base:
        unseen = base.execute(
            f"SELECT n FROM (SELECT unnest(range(1, 13)) AS n) WHERE {seen.unseen_sql('n')} ORDER BY n"
        ).fetchall()
    assert [n for (n,) in unseen] == [1, 4, 5, 6, 8, 10, 11, 12]
