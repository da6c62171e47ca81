"""The Python of the README and of the guide runs as it stands, and "Getting started" gives what it says."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kit.snippets import Snippet, page, snippets
from spillway import Session, read_job

GETTING_STARTED = page("docs/getting-started.md")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory, as relative paths in the pages expect."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def run(snippet: Snippet) -> dict[str, Any]:
    """Run a block; the shared session's JVM was started elsewhere, so paths that Spark opens are absolute."""
    space: dict[str, Any] = {}
    text = snippet.text
    for begin in ('"data/', 'checkpoint="', 'path="'):
        quote = begin.index('"') + 1
        text = text.replace(begin, f"{begin[:quote]}{Path.cwd()}/{begin[quote:]}")
    exec(compile(text, snippet.name, "exec"), space)
    return space


def shell(commands: list[str], program: str) -> None:
    for line in commands:
        if line.startswith(program):
            subprocess.run(["bash", "-c", line], check=True)


def keyed_streams() -> None:
    for name in ("a", "b", "c"):
        Path("data", name).mkdir(parents=True)
        rows = "SELECT range % 10 AS k, range AS id FROM range(40)"
        duckdb.sql(f"COPY ({rows}) TO 'data/{name}/1.parquet'")


@pytest.mark.parametrize("name", ["README.md", "docs/python.md"])
def test_session(name: str, spark: object) -> None:
    keyed_streams()
    first = snippets("python", pages=page(name))[0]
    summary = run(first)["query"].summary()
    assert summary["complete"]
    assert summary["results_runtime"] > 0


def test_getting_started(spark: object) -> None:
    create, *_ = snippets("sh", pages=GETTING_STARTED)[1:]
    job, *_ = snippets("toml", pages=GETTING_STARTED)
    (python,) = snippets("python", pages=GETTING_STARTED)
    more = [line for each in snippets("sh", pages=GETTING_STARTED)[2:] for line in each.commands]
    shell(create.commands, "mkdir")
    shell(create.commands, "printf")
    Path("job.toml").write_text(job.text)
    assert paid_orders() == [1, 3]
    shell(more, "printf")
    assert paid_orders() == [1, 2, 3]
    run(python)
    assert duckdb.sql("SELECT count(*) FROM 'paid/*.parquet'").fetchall() == [(3,)]


def paid_orders() -> list[int]:
    with Session() as session:
        session.run_job(read_job("job.toml")).awaitTermination()
    return [row[0] for row in duckdb.sql("SELECT id FROM 'out/*.parquet' ORDER BY id").fetchall()]


def test_compute(spark: object) -> None:
    for name, rows in (("orders", "range AS id, range % 5 AS part"), ("parts", "range AS id, 'x' AS title")):
        Path("data", name).mkdir(parents=True)
        duckdb.sql(f"COPY (SELECT {rows} FROM range(5)) TO 'data/{name}/1.parquet'")
    (snippet,) = snippets("python", pages=page("docs/compute.md"))
    assert run(snippet)["summary"]["rows"] == 5
