"""The details of a failure: where they are written, how much, and what the error says about it."""

from pathlib import Path

import pytest

from spillway import detail_log
from spillway.detail_log import DetailLog, log_of
from spillway.errors import SpillwayError


def failed(message: str = "it failed") -> SpillwayError:
    """An error with a cause, raised and caught."""
    try:
        try:
            raise ValueError("deep inside")
        except ValueError as cause:
            raise SpillwayError(message) from cause
    except SpillwayError as error:
        return error


def test_an_error_is_written_with_its_causes_and_what_spark_said(tmp_path: Path) -> None:
    path, error = tmp_path / "spillway.log", failed()
    assert log_of(error) is None
    DetailLog(path, lambda: "ERROR Executor: Exception in task 0.0").record(error)
    text = path.read_text()
    assert log_of(error) == str(path)
    for part in ("it failed", "deep inside", "test_detail_log.py", "ERROR Executor: Exception in task 0.0"):
        assert part in text
    DetailLog(path).record(failed("again"))
    assert path.read_text().startswith(text) and "again" in path.read_text()


def test_a_long_log_makes_room_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_log, "MOST_BYTES", 3000)
    path = tmp_path / "spillway.log"
    for number in range(20):
        DetailLog(path).record(failed(f"failure {number} {'x' * 2000}"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["spillway.log", "spillway.log.1"]
    assert all(entry.stat().st_size <= 6000 for entry in tmp_path.iterdir())
    assert "failure 19" in path.read_text()


@pytest.mark.parametrize("place", ["remote", "full", "below a file"])
def test_where_the_checkpoint_cannot_take_it_a_temporary_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full.log").symlink_to("/dev/full")
    path = {"remote": None, "full": tmp_path / "full.log", "below a file": tmp_path / "file" / "a.log"}[place]
    error = failed()
    DetailLog(path).record(error)
    found = Path(log_of(error) or "")
    assert found.parent == tmp_path and found.match("spillway-*.log")
    assert "deep inside" in found.read_text()
    assert found.stat().st_mode & 0o077 == 0, "it may quote data"


def test_without_any_disk_the_error_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    error = failed()
    DetailLog(None).record(error)
    assert log_of(error) is None


def test_all_text_passes_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_log, "cleaned", lambda text: text.replace("secret", "***"))
    DetailLog(tmp_path / "a.log", lambda: "password=secret").record(failed("the secret"))
    text = (tmp_path / "a.log").read_text()
    assert "secret" not in text and text.count("***") >= 2
