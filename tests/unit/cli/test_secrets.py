"""A maintained view with places and a password from the environment: nothing that is written shows them."""

import sqlite3
from pathlib import Path

import duckdb
import pytest

from kit.commands import Call
from spillway import redaction

SECRET = "hunter2-secret"
JOB = """
[view]
sql = "SELECT o.id, p.price FROM orders o JOIN prices p ON o.item = p.item WHERE o.note <> '${NOTE}'"
[servers.shop]
kind = "sqlite"
path = "${SHOP}/shop.sqlite"
[servers.base]
kind = "duckdb"
path = "${SHOP}/base.duckdb"
[sources.orders]
server = "shop"
[sources.prices]
server = "base"
[maintain]
store = "view.duckdb"
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(redaction, "_SHOWN", {})
    monkeypatch.setenv("NOTE", f"{SECRET} note")
    monkeypatch.setenv("SHOP", str(tmp_path / SECRET))
    (tmp_path / SECRET).mkdir()
    with sqlite3.connect(tmp_path / SECRET / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, item TEXT, note TEXT)")
        connection.execute("INSERT INTO orders VALUES (1, 'pen', 'a'), (2, 'ink', 'b')")
    connection.close()
    with duckdb.connect(str(tmp_path / SECRET / "base.duckdb")) as base:
        base.execute("CREATE TABLE prices AS SELECT * FROM (VALUES ('pen', 3), ('ink', 5)) t (item, price)")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def written(root: Path) -> list[str]:
    """Files beside the sources that have the secret in them."""
    files = [path for path in root.iterdir() if path.is_file()]
    assert files
    return [path.name for path in files if SECRET.encode() in path.read_bytes()]


def test_a_job_that_runs_and_fails_shows_nothing(shop: Path, call: Call) -> None:
    said = []
    for words in (("--json",), ("--explain",), ("--explain", "--json"), ("--verify",)):
        code, *text = call("maintain", shop / "job.toml", *words)
        assert code == 0, text
        said += text
    with sqlite3.connect(shop / SECRET / "shop.sqlite") as connection:
        connection.execute("INSERT INTO orders VALUES (3, 'ink', 'c')")
    connection.close()
    assert call("maintain", shop / "job.toml")[0] == 0
    (shop / SECRET / "base.duckdb").rename(shop / "elsewhere.duckdb")
    code, output, error = call("maintain", shop / "job.toml", "--json")
    assert (code, "${SHOP}/base.duckdb" in error, "${SHOP}/base.duckdb" in output) == (1, True, True)
    assert (shop / "view.duckdb.journal.jsonl").exists()
    assert [text for text in (*said, output, error) if SECRET in text] == []
    (shop / "elsewhere.duckdb").unlink()
    assert written(shop) == []


@pytest.mark.parametrize(
    ("password", "message"),
    [
        (SECRET, "connection"),
        (f"{SECRET} it's", "[servers.base] dsn = \"host=127.0.0.1 port=1 password='${NOTE}'\" is not a"),
    ],
)
def test_a_password_is_not_in_what_postgresql_says(
    shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch, password: str, message: str
) -> None:
    monkeypatch.setenv("NOTE", password)
    dsn = "dsn = \"host=127.0.0.1 port=1 password='${NOTE}'\""
    text = JOB.replace(" WHERE o.note <> '${NOTE}'", "").replace('"duckdb"', '"postgresql"')
    (shop / "job.toml").write_text(text.replace('path = "${SHOP}/base.duckdb"', dsn))
    code, output, error = call("maintain", shop / "job.toml", "--json")
    assert (code, message in error) == (1, True), error
    assert "hunter2" not in output + error
