"""Rows compared as multisets."""

import duckdb
import pytest

from spillway.lab.engines.multiset import MultisetDifference, multiset_difference

WANTED = "SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (2, NULL)) AS rows(n, t)"


@pytest.mark.parametrize(
    ("found", "missing", "extra"),
    [
        ("(NULL, 2), ('a', 1), ('a', 1)", 0, 0),
        ("(NULL, 2), ('a', 1)", 1, 0),
        ("(NULL, 2), (NULL, 2), ('a', 1)", 1, 1),
        ("(NULL, 2), ('a', 1), ('a', 1), ('a', 1)", 0, 1),
        ("('b', 2), ('a', 1), ('a', 1)", 1, 1),
    ],
)
def test_each_row_counts_as_often_as_it_occurs(found: str, missing: int, extra: int) -> None:
    with duckdb.connect() as database:
        rows = f"SELECT * FROM (VALUES {found}) AS rows(t, n)"
        assert multiset_difference(database, WANTED, rows) == MultisetDifference(missing, extra)
