"""The identity of a checkpoint whose job has values from the environment: only their names count."""

from dataclasses import replace
from pathlib import Path

import pytest

from spillway import redaction
from spillway.errors import CheckpointError
from spillway.job import Document
from spillway.manager.checkpoint import Checkpoint, Identity
from spillway.spark.sources.streaming import source_place


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_SHOWN", {})


def identity(path: str, sql: str = "SELECT 1", **variables: str) -> Identity:
    tables = {
        "view": {"sql": sql},
        "sources": {"a": {"format": "parquet", "path": path}},
        "run": {"checkpoint": "state"},
    }
    job = Document(tables, Path("/jobs"), environment=variables).run_job()
    place = source_place(job.sources["a"])
    assert place is not None
    return Identity("print", job.view.text, (("k bigint",),), 8, (place,), "delta")


def opened(directory: Path, identity: Identity) -> str:
    checkpoint = Checkpoint(str(directory), identity)
    checkpoint.close()
    return checkpoint.query_id


@pytest.mark.parametrize("path", ["${PLACE}", "${PLACE}/a", "in/${PLACE}"])
def test_files_elsewhere_are_refused_without_showing_where(tmp_path: Path, path: str) -> None:
    before = opened(tmp_path, identity(path, PLACE="first-secret"))
    assert "secret" not in (tmp_path / "query.json").read_text()
    assert opened(tmp_path, identity(path, PLACE="first-secret")) == before
    with pytest.raises(CheckpointError, match=r"read source a from parquet .*\$\{PLACE\}") as caught:
        opened(tmp_path, identity(path, PLACE="second-secret"))
    assert "secret" not in str(caught.value)


def test_variables_that_the_view_does_not_use_change_nothing(tmp_path: Path) -> None:
    plain = identity("/data/a", "SELECT orders.id FROM orders")
    redaction.hide("DATA", "orders")
    before = opened(tmp_path, plain)
    redaction._SHOWN.clear()
    redaction.hide("DATA", "lines")
    assert opened(tmp_path, plain) == before


@pytest.mark.parametrize("path", ["s3://user:${PLACE}@bucket/${PLACE}/a/"])
def test_another_value_is_the_same_job(tmp_path: Path, path: str) -> None:
    before = opened(tmp_path, identity(path, PLACE="first-secret"))
    assert "secret" not in (tmp_path / "query.json").read_text()
    assert opened(tmp_path, identity(path, PLACE="second-secret")) == before
    with pytest.raises(CheckpointError, match=r"read source a from parquet .*\$\{PLACE\}") as caught:
        opened(tmp_path, identity("${OTHER}/b", OTHER="third-secret"))
    assert "secret" not in str(caught.value)


def test_a_job_file_may_get_variables_later(tmp_path: Path) -> None:
    plain = identity("/data/first-secret/a", "SELECT 'first-secret'")
    before = opened(tmp_path, plain)
    now = identity("${ROOT}/a", "SELECT '${NAME}'", ROOT="/data/first-secret", NAME="first-secret")
    assert opened(tmp_path, now) == before
    with pytest.raises(CheckpointError, match="the plan was print, now it is other"):
        opened(tmp_path, replace(now, fingerprint="other"))
