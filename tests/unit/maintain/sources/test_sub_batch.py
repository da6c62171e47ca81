"""The size of composite queries follows what they cost."""

import pytest

from spillway.maintain.sources.sub_batch import LADDER, SUB_BATCH, SubBatch


def after(
    sub_batch: SubBatch, queries: int, fixed: float, per_key: float, per_key_squared: float = 0.0
) -> int:
    for _ in range(queries):
        keys = sub_batch.size
        sub_batch.record(keys, fixed + per_key * keys + per_key_squared * keys**2)
    return sub_batch.best


def test_it_begins_with_fifty_keys() -> None:
    assert SubBatch().size == SUB_BATCH == 50


@pytest.mark.parametrize(
    ("fixed", "per_key", "squared", "best"),
    [
        (1.0, 0.001, 0.0, 1000),  # a query costs what its start costs
        (0.001, 0.0001, 0.01, 10),  # large queries are out of proportion
        (0.02, 0.0005, 2e-6, 100),
    ],
)
def test_it_finds_the_cheapest_size(fixed: float, per_key: float, squared: float, best: int) -> None:
    assert after(SubBatch(), 60, fixed, per_key, squared) == best


def test_it_follows_a_source_that_changes() -> None:
    found = SubBatch()
    assert after(found, 60, 1.0, 0.001) == LADDER[-1]
    assert after(found, 3_000, 0.0001, 0.0, 0.01) == LADDER[0]


def test_a_given_size_stays_and_rests_count_for_nothing() -> None:
    assert after(SubBatch(7), 100, 1.0, 0.001) == 7
    found = SubBatch()
    found.record(13, 1e-9)
    assert found.size == SUB_BATCH
