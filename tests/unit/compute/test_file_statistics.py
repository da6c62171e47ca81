"""Statistics from footers and samples: near the truth, within their time, whatever the filter says."""

import itertools
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.compute.file_statistics import BATCH_ROWS, Footers, ParquetRelation
from spillway.compute.sketch import RelationStatistics, selectivity

ROWS = 400_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders with lines in their order, parts that lines draw at random, and a text."""
    directory = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(3)
    line = pa.table(
        {
            "o": np.sort(random.integers(0, ROWS, ROWS)) // 4 * 8,
            "p": random.integers(0, 5_000, ROWS),
            "d": random.integers(0, 100, ROWS).astype(np.int32),
            "t": [f"text {n % 7}" for n in range(ROWS)],
        }
    )
    pq.write_table(line, directory / "line.parquet", row_group_size=20_000)
    pq.write_table(
        pa.table({"o": np.arange(ROWS // 4) * 8}), directory / "order.parquet", row_group_size=10_000
    )
    pq.write_table(pa.table({"p": np.arange(5_000)}), directory / "part.parquet")
    return directory


def clock(step: float) -> "itertools.count[float]":
    return itertools.count(0.0, step)


def relation(data: Path, name: str, keys: tuple[str, ...], filter_: str | None = None) -> ParquetRelation:
    columns = tuple((key, key) for key in keys)
    return ParquetRelation((str(data / f"{name}.parquet"),), columns, frozenset(keys), filter_)


def made(data: Path, line_filter: str | None, seconds: float) -> list[RelationStatistics]:
    """Every look at the clock takes a second."""
    relations = [
        relation(data, "line", ("o", "p"), line_filter),
        relation(data, "order", ("o",)),
        relation(data, "part", ("p",)),
    ]
    with Footers(relations) as footers:
        assert footers.rows == [ROWS, ROWS // 4, 5_000]
        return footers.statistics(seconds, clock(1.0).__next__)


@pytest.mark.parametrize("line_filter", [None, "`d` < 30", "`t` LIKE '%3%' AND `d` >= 50"])
@pytest.mark.parametrize("seconds", [0.0, 20.0, 1e6])
def test_near_the_truth(data: Path, line_filter: str | None, seconds: float) -> None:
    line, order, part = made(data, line_filter, seconds)
    where = "true" if line_filter is None else line_filter.replace("`", "")
    with duckdb.connect() as database:
        rows = f"(FROM '{data}/line.parquet' WHERE {where})"
        ((truth, orders, parts),) = database.sql(
            f"SELECT (SELECT count(*) FROM {rows}), (SELECT count(*) FROM {rows} JOIN '{data}/order.parquet' "
            f"USING (o)), (SELECT count(*) FROM {rows} JOIN '{data}/part.parquet' USING (p))"
        ).fetchall()
    assert line.rows == pytest.approx(truth, rel=0.1)
    found = selectivity(line.keys["o"], order.keys["o"], line.rows, order.rows) * line.rows * order.rows
    assert found == pytest.approx(orders, rel=0.3)
    found = selectivity(line.keys["p"], part.keys["p"], line.rows, part.rows) * line.rows * part.rows
    assert found == pytest.approx(parts, rel=0.3)


def test_a_limit_bounds_what_is_read(data: Path) -> None:
    relations = [relation(data, "line", ("o", "p"))]
    shares = []
    for seconds in (0.0, 15.0, 1e6):
        with Footers(relations) as footers:
            (found,) = footers.statistics(seconds, clock(1.0).__next__)
        shares.append(found.keys["p"].share)
    assert shares[0] <= BATCH_ROWS / ROWS
    assert shares[0] < shares[1] < shares[2] == 1.0


@pytest.mark.parametrize("filter_", ["no_such(`d`) > 1", "`nowhere` = 1", "`d` = date '2020-01-01'"])
def test_a_filter_that_cannot_be_tested_is_a_guess(data: Path, filter_: str) -> None:
    line, *_ = made(data, filter_, 1e6)
    assert line.rows == round(ROWS / 3)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([2**62, -(2**63)])), max_size=40),
    st.sampled_from(["int64", "int8", "string", "large_string", "string_view"]),
    st.integers(1, 7),
)
def test_any_column(values: list[int | None], kind: str, group: int) -> None:
    """Nulls, empty files, extreme integers, text: counts of rows and of keys that are not null are exact."""
    import tempfile

    kept = [None if one is None else one % 100 if kind == "int8" else one for one in values]
    column = pa.array([None if one is None else str(one) for one in kept] if "string" in kind else kept, kind)
    with tempfile.TemporaryDirectory() as directory:
        pq.write_table(pa.table({"k": column}), f"{directory}/a.parquet", row_group_size=group)
        one = ParquetRelation((f"{directory}/a.parquet",), (("k", "k"),), frozenset({"k"}))
        with Footers([one]) as footers:
            (found,) = footers.statistics(1e6, clock(1.0).__next__)
    assert found.rows == len(values)
    assert found.keys["k"].rows == len(values) - column.null_count
    assert selectivity(found.keys["k"], found.keys["k"], found.rows, found.rows) <= 1.0
