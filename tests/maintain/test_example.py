"""The example of two databases: after every round the view is what DuckDB computes from the tables."""

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from kit.projects import Example, copied
from spillway.cli.app import main

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def maintain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*words: object) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["spillway", "maintain", *map(str, words), "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        output, error = capsys.readouterr()
        assert not ended.value.code, error
        return dict(json.loads(output))

    return run


def stored(example: Example) -> Counter[Any]:
    with duckdb.connect(example.directory / "view.duckdb", read_only=True) as view:
        return Counter(view.sql("SELECT region, category, orders, pieces, cents FROM result").fetchall())


def recomputed(example: Example) -> Counter[Any]:
    data = example.directory / "data"
    with duckdb.connect(data / "products.duckdb", read_only=True) as database:
        with closing(sqlite3.connect(data / "shop.sqlite")) as shop:
            for name in ("customers", "orders"):
                rows = shop.execute(f"SELECT * FROM {name}")
                columns = [column[0] for column in rows.description]
                values = zip(*rows.fetchall(), strict=True)
                database.register(name, pa.table(dict(zip(columns, values, strict=True))))
        return Counter(database.sql(example.sql).fetchall())


def test_databases(maintain: Call, tmp_path: Path) -> None:
    example = copied("databases", tmp_path)
    example.script("generate.py")
    assert maintain(example.job)["rows"] == 20
    assert stored(example) == recomputed(example)
    for day in (1, 2):
        example.script("change.py", str(day))
        assert stored(example) != recomputed(example)
        (round_,) = maintain(example.job)["rounds"]
        assert f"round {day}: {round_['updates']} updates, " in example.readme
        assert stored(example) == recomputed(example)
    verified = maintain(example.job, "--verify")
    assert verified["verified"] and not any(verified["waiting_changes"].values())
    example.script("ask.py")
