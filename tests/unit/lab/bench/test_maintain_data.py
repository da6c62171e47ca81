"""The updates of `bench maintain`: rows that are there go, as many come, and ids are never used twice."""

from spillway.lab.bench.maintain_data import JoiningRows, joining_rows


def test_as_many_come_as_go() -> None:
    rows, there, used = JoiningRows(10, 0), set(range(10)), set(range(10))
    for _ in range(20):
        fresh, gone = rows.exchange(4)
        assert len(fresh) == len(gone) == 4
        assert set(gone) <= there
        assert used.isdisjoint(fresh)
        there, used = (there - set(gone)) | set(fresh), used | set(fresh)
    assert len(there) == 10
    assert len(rows.exchange(99)[0]) == 10


def test_the_view_has_about_as_many_rows_as_a_relation() -> None:
    assert joining_rows(1_000_000, 1.0, 6) == 1_000_000
    assert joining_rows(1_000_000, 3.0, 6) == 1_000_000 // 3**5
    assert joining_rows(1_000_000, 0.5, 6) == 1_000_000
