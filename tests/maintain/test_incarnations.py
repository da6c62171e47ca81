"""Sources and stores that are recreated or restored: a round is right, or it asks for a reload."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kit.commands import Call

JOB = """
[view]
sql = "SELECT o.id AS id, o.v AS v, p.w AS w FROM o JOIN p ON o.k = p.k"
[servers.one]
kind = "KIND"
path = "one.db"
[servers.two]
kind = "sqlite"
path = "two.sqlite"
[sources.o]
server = "one"
[sources.p]
server = "two"
[maintain]
store = "view.duckdb"
"""
FILES = ("sqlite", "duckdb")
KINDS = (*FILES, "delta")


def connect(kind: str, path: Path) -> Any:
    return sqlite3.connect(path, isolation_level=None) if kind == "sqlite" else duckdb.connect(str(path))


class Place:
    """The table `o` of one kind of source, which tests write, drop, copy and restore, and a job over it."""

    def __init__(self, kind: str, root: Path, call: Call) -> None:
        self.kind, self.root, self._call = kind, root, call
        self.path = root / "one.db"
        (root / "job.toml").write_text(JOB.replace("KIND", kind))
        self.run_two("CREATE TABLE p (k INTEGER, w INTEGER)", "INSERT INTO p VALUES (1, 10), (2, 20)")
        self.create()
        self.insert((1, 1, 5), (2, 2, 6))

    def run(self, *statements: str) -> None:
        connection = connect(self.kind, self.path)
        for statement in statements:
            connection.execute(statement)
        connection.close()

    def run_two(self, *statements: str) -> None:
        connection = sqlite3.connect(self.root / "two.sqlite", isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()

    def create(self) -> None:
        if self.kind == "delta":
            write_deltalake(self.path / "o", _rows([]))
        else:
            self.run("CREATE TABLE o (id BIGINT, k BIGINT, v BIGINT)")

    def drop(self) -> None:
        if self.kind == "delta":
            shutil.rmtree(self.path / "o")
        else:
            self.run("DROP TABLE o")

    def insert(self, *rows: tuple[int, int, int]) -> None:
        if self.kind == "delta":
            write_deltalake(self.path / "o", _rows(rows), mode="append")
        else:
            self.run(f"INSERT INTO o VALUES {', '.join(map(str, rows))}")

    def save(self, what: str, name: str) -> None:
        copied = self.root / what
        if copied.is_dir():
            shutil.copytree(copied, self.root / name)
        else:
            shutil.copy(copied, self.root / name)

    def restore(self, what: str, name: str) -> None:
        if (self.root / what).is_dir():
            shutil.rmtree(self.root / what)
            shutil.copytree(self.root / name, self.root / what)
        else:
            (self.root / what).unlink()
            shutil.copy(self.root / name, self.root / what)

    def maintain(self, *options: str) -> tuple[int, str]:
        code, _, error = self._call("maintain", self.root / "job.toml", *options)
        return code, error

    def result(self) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.root / "view.duckdb"), read_only=True) as store:
            return store.execute("FROM result ORDER BY ALL").fetchall()

    def expected(self) -> list[tuple[Any, ...]]:
        if self.kind == "delta":
            rows = DeltaTable(self.path / "o").to_pyarrow_table().select(["id", "k", "v"]).to_pylist()
            values = [tuple(row.values()) for row in rows]
        else:
            connection = connect(self.kind, self.path)
            values = connection.execute("SELECT id, k, v FROM o").fetchall()
            connection.close()
        two = sqlite3.connect(self.root / "two.sqlite")
        weights = two.execute("SELECT k, w FROM p").fetchall()
        two.close()
        joined = [(i, v, w) for i, k, v in values for key, w in weights if key == k]
        return sorted((*row, joined.count(row)) for row in set(joined))

    def must_ask_for_a_reload(self) -> None:
        before = self.result()
        code, error = self.maintain()
        assert (code, error.count("\n"), "--reload" in error) == (1, 1, True), error
        assert self.result() == before
        assert self.maintain("--verify")[0] == 1
        code, error = self.maintain("--reload")
        assert code == 0, error
        assert self.result() == self.expected()
        self.insert((70, 1, 7))
        assert self.maintain()[0] == 0
        assert self.result() == self.expected()
        assert self.maintain("--verify")[0] == 0


def _rows(rows: Any) -> pa.Table:
    schema = pa.schema({"id": pa.int64(), "k": pa.int64(), "v": pa.int64()})
    return pa.Table.from_pylist([dict(zip(("id", "k", "v"), row, strict=True)) for row in rows], schema)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, call: Call) -> Place:
    if request.param == "delta":
        (tmp_path / "one.db").mkdir()
    found = Place(request.param, tmp_path, call)
    assert found.maintain()[0] == 0
    assert found.result() == found.expected()
    return found


@pytest.mark.parametrize("written", [0, 5])
def test_a_table_that_was_dropped_and_recreated(place: Place, written: int) -> None:
    place.insert((3, 1, 7))
    assert place.maintain()[0] == 0
    place.drop()
    place.create()
    for number in range(written):
        place.insert((10 + number, 1, number))
    if place.kind == "duckdb":  # rows are compared, so it does not matter how they came
        assert place.maintain()[0] == 0
        assert place.result() == place.expected()
    else:
        place.must_ask_for_a_reload()


@pytest.mark.parametrize("written", [0, 1, 2, 5])
def test_an_older_copy_of_a_source(place: Place, written: int) -> None:
    place.insert((3, 1, 7))
    assert place.maintain()[0] == 0
    place.save("one.db", "copy")
    place.insert((4, 1, 8))
    place.insert((5, 1, 8))
    assert place.maintain()[0] == 0
    place.restore("one.db", "copy")
    for number in range(written):
        place.insert((10 + number, 1, number))
    place.must_ask_for_a_reload()


def test_a_copy_of_a_source_of_which_nothing_was_read_since(place: Place) -> None:
    place.insert((3, 1, 7))
    assert place.maintain()[0] == 0
    place.save("one.db", "copy")
    place.insert((4, 1, 8))
    place.restore("one.db", "copy")
    place.insert((5, 2, 9))
    assert place.maintain()[0] == 0
    assert place.result() == place.expected()


def test_an_older_copy_of_the_store(place: Place) -> None:
    place.insert((3, 1, 7))
    assert place.maintain()[0] == 0
    place.save("view.duckdb", "copy")
    place.insert((4, 1, 8))
    assert place.maintain()[0] == 0
    place.restore("view.duckdb", "copy")
    place.insert((5, 1, 9))
    if place.kind == "delta":  # all versions are still there
        assert place.maintain()[0] == 0
        assert place.result() == place.expected()
    else:
        place.must_ask_for_a_reload()


def test_a_table_that_another_view_records_anew(place: Place) -> None:
    """The other view's first run makes triggers again; the first view must not take them for its own."""
    place.drop()
    place.create()
    place.insert((8, 2, 8))
    job = (place.root / "job.toml").read_text()
    (place.root / "job.toml").write_text(job.replace("view.duckdb", "other.duckdb"))
    assert place.maintain()[0] == 0
    (place.root / "job.toml").write_text(job)
    place.insert((9, 1, 9))
    if place.kind == "duckdb":
        assert place.maintain()[0] == 0
        assert place.result() == place.expected()
    else:
        place.must_ask_for_a_reload()


def test_delta_restore(tmp_path: Path, call: Call) -> None:
    (tmp_path / "one.db").mkdir()
    place = Place("delta", tmp_path, call)
    assert place.maintain()[0] == 0
    place.insert((3, 1, 7))
    assert place.maintain()[0] == 0
    DeltaTable(place.path / "o").restore(1)
    place.insert((4, 1, 7))
    assert place.maintain()[0] == 0
    assert place.result() == place.expected()


def test_reload_keeps_the_old_result_until_the_new_one_is_committed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place.result()
    place.insert((3, 1, 7))

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("spillway.maintain.view_store.ViewStore.replace", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        place.maintain("--reload")
    monkeypatch.undo()
    assert place.result() == before


def test_json_says_that_the_view_was_reloaded(place: Place, call: Call) -> None:
    _, output, _ = call("maintain", place.root / "job.toml", "--reload", "--json")
    assert json.loads(output.splitlines()[-1])["reloaded"] is True
    _, output, _ = call("maintain", place.root / "job.toml", "--json")
    assert json.loads(output.splitlines()[-1])["reloaded"] is False
