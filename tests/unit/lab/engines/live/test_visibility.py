"""When result files became visible, from a directory as each sink leaves it."""

import json
import os
from pathlib import Path

import pytest

from spillway.lab.engines.live.visibility import by_rename, by_spark_log


def test_a_file_is_visible_when_it_gets_its_name(tmp_path: Path) -> None:
    staged = tmp_path / "_spillway"
    staged.mkdir()
    (staged / "x").write_text("1")
    os.utime(staged / "x", (5, 5))
    (staged / "x").rename(tmp_path / "part-0.parquet")
    found = by_rename(tmp_path)
    assert list(found) == [str(tmp_path / "part-0.parquet")]
    assert found[str(tmp_path / "part-0.parquet")] > 1_000_000


def test_a_file_of_spark_is_visible_with_the_first_entry_that_lists_it(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()

    def entry(name: str, committed: float, *files: str) -> None:
        lines = [json.dumps({"path": f"file:///r/{file}", "size": 1, "action": "add"}) for file in files]
        (log / name).write_text("\n".join(["v1", *lines]))
        os.utime(log / name, (committed, committed))

    entry("8", 100.0, "a.parquet")
    entry("9.compact", 200.0, "a.parquet", "b%20c.parquet")
    entry("10", 300.0, "d.parquet")
    entry(".10.crc", 1.0, "d.parquet")
    assert by_spark_log(tmp_path) == {
        "/r/a.parquet": pytest.approx(100.0),
        "/r/b c.parquet": pytest.approx(200.0),
        "/r/d.parquet": pytest.approx(300.0),
    }
