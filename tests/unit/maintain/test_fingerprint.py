"""Fingerprints of maintained views are stored: names in them (of classes and fields too) never change."""

import pytest

from spillway.maintain.definition import define_view
from spillway.model import Column, View

CATALOG = {
    "l": (Column("k", "bigint"), Column("x", "string")),
    "r": (Column("k", "int"), Column("y", "double")),
}
JOIN = "FROM l JOIN r ON l.k = r.k WHERE l.x <> 'z' AND l.k + r.k > 3"


@pytest.mark.parametrize(
    ("sql", "fingerprint"),
    [
        (
            f"SELECT l.x, r.y * 2 AS twice {JOIN}",
            "7ffe9c4cb76061c8dac7185491c88a40a7bcf7e6db9eee83ceb9b6840c1f3424",
        ),
        (
            f"SELECT l.x, sum(r.y) AS total, count(*) AS n {JOIN} GROUP BY l.x",
            "427adba31610f0a391a63b4061a3fc6f519673b22616b69177e80d403663b2b0",
        ),
    ],
)
def test_stored_fingerprints_stay(sql: str, fingerprint: str) -> None:
    assert define_view(View.sql(sql), CATALOG).fingerprint == fingerprint
