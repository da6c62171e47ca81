"""What files say about the inputs of a view, and which sources say nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from spillway.catalog import file_statistics
from spillway.catalog.file_statistics import FileStatistics
from spillway.job.sources import SourceSpec
from spillway.plan.rules import AskedInput, InputStatistics, NoStatistics


def table(rows: int, first: int = 0) -> pa.Table:
    numbers = np.arange(first, first + rows)
    return pa.table(
        {
            "id": numbers,
            "k": numbers % 50,
            "n": pa.array(numbers % 10, mask=numbers % 4 == 0),
            "s": [f"s{number % 20}" for number in numbers],
        }
    )


def stored(directory: Path, files: int = 2, rows: int = 1000) -> SourceSpec:
    directory.mkdir()
    for number in range(files):
        pq.write_table(table(rows, number * rows), directory / f"{number:03d}.parquet")
    return SourceSpec("a", "parquet", str(directory))


def asked(*keys: str, filter_: str | None = None) -> AskedInput:
    return AskedInput("a", "a", filter_, dict(enumerate(keys)))


def found(spec: SourceSpec, input_: AskedInput) -> InputStatistics:
    answer = FileStatistics({"a": spec})([input_])
    assert not isinstance(answer, NoStatistics), answer
    (statistics,) = answer
    return statistics


def test_rows_and_distinct_keys_of_small_files(tmp_path: Path) -> None:
    statistics = found(stored(tmp_path / "a"), asked("`id`", "`k`", "`s`"))
    assert (statistics.rows, statistics.all_rows) == (2000, 2000)
    assert statistics.distinct == pytest.approx({0: 2000, 1: 50, 2: 20}, rel=0.01)


def test_a_filter_is_tested_and_keys_keep_their_domain(tmp_path: Path) -> None:
    statistics = found(stored(tmp_path / "a"), asked("`k`", filter_="`k` < 5 AND `s` LIKE 's%'"))
    assert (statistics.rows, statistics.all_rows) == (200, 2000)
    assert statistics.distinct[0] == pytest.approx(50, rel=0.1)


def test_rows_with_a_null_key_do_not_count(tmp_path: Path) -> None:
    statistics = found(stored(tmp_path / "a"), asked("`n`"))
    assert (statistics.rows, statistics.all_rows) == (1500, 2000)


def test_keys_that_are_no_columns_of_files_are_left_open(tmp_path: Path) -> None:
    statistics = found(stored(tmp_path / "a"), asked("`k` + 1", "`K`", "`day`"))
    assert statistics.distinct == pytest.approx({1: 50}, rel=0.01)


def test_of_many_files_some_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_statistics, "MOST_FILES", 4)
    statistics = found(stored(tmp_path / "a", files=10, rows=100), asked("`k`"))
    assert statistics.all_rows == pytest.approx(1000, rel=0.1)
    assert statistics.distinct == {}


def test_a_large_file_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little time there is, a batch of rows is read."""
    monkeypatch.setattr(file_statistics, "LIMIT_SECONDS", 0.0)
    statistics = found(
        stored(tmp_path / "a", files=1, rows=200_000), asked("`id`", "`k`", filter_="`k` < 25")
    )
    assert statistics.all_rows == 200_000
    assert statistics.rows == pytest.approx(100_000, rel=0.05)
    assert statistics.distinct[0] == pytest.approx(200_000, rel=0.05)
    assert statistics.distinct[1] == pytest.approx(50, rel=0.05)


def test_files_of_a_delta_table_are_those_of_its_log(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    write_deltalake(path, table(500))
    write_deltalake(path, table(300), mode="overwrite")
    statistics = found(SourceSpec("a", "delta", path), asked("`k`"))
    assert statistics.all_rows == 300
    assert statistics.distinct == pytest.approx({0: 50}, rel=0.01)


@pytest.mark.parametrize(("filter_", "rows"), [(None, 3000), ("`k` > 1", 1000)])
def test_rows_of_text_are_counted_by_the_length_of_lines(
    tmp_path: Path, filter_: str | None, rows: int
) -> None:
    (tmp_path / "a").mkdir()
    for name in "xyz":
        (tmp_path / "a" / f"{name}.csv").write_text("12,345,abc\n" * 1000)
    statistics = found(SourceSpec("a", "csv", str(tmp_path / "a"), "k int"), asked("`k`", filter_=filter_))
    assert statistics.rows == pytest.approx(rows)
    assert statistics.all_rows == pytest.approx(3000)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"format": "kafka"}, '[sources.a] has format = "kafka"'),
        ({"path": "{path}/nowhere"}, "No such file"),
        ({"path": "{path}/empty"}, "has no files yet"),
        ({"path": "s3://bucket/a"}, "is not a plain one on this machine"),
        ({"path": "{path}/damaged"}, "arquet"),
        ({"format": "delta", "path": "{path}/empty"}, "cannot be read by its log alone"),
    ],
)
def test_what_has_no_statistics(tmp_path: Path, keys: Mapping[str, Any], why: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "0.parquet").write_text("no footer")
    given = {"format": "parquet", "path": str(tmp_path)} | keys
    spec = SourceSpec("a", given["format"], given["path"].replace("{path}", str(tmp_path)))
    answer = FileStatistics({"a": spec})([asked("`k`")])
    assert isinstance(answer, NoStatistics)
    assert why in answer.why
    assert "\n" not in answer.why


def test_a_dataframe_has_no_statistics() -> None:
    assert FileStatistics({})([asked("`k`")]) == NoStatistics("source a is a DataFrame")
