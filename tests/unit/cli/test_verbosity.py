"""How much a command shows: progress, only errors and results, or everything."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kit.commands import Call
from spillway.cli import output
from spillway.cli.output import ProgressLine, Verbosity, complain, say, set_verbosity, starting
from spillway.cli.segment_bars import SegmentBars
from spillway.detail_log import DetailLog
from spillway.errors import SinkError

JOB = """[view]
sql = "SELECT a.id AS p, b.id AS q FROM a, b WHERE a.k = b.k"
[sources.a]
format = "parquet"
path = "a"
schema = "k long, id long"
[sources.b]
format = "parquet"
path = "b"
schema = "k long, id long"
[run]
checkpoint = "state"
[sink]
path = "out"
"""
EPOCH = {"sequence": 0, "input_rows": 10, "results": 5, "pending_rows": 0, "processors": []}
SUMMARY: Mapping[str, Any] = {
    "input_rows": 10, "results_runtime": 5, "results_cleanup": 0, "epochs": 1, "run_input_rows": 10,
    "run_results": 5, "run_epochs": 1, "complete": True, "missing": [], "null_time_rows": 0, "late_rows": 0,
    "malformed_rows": 0, "seconds": 2.0, "resident_bytes_peak": [],
}  # fmt: skip


class FakeSession:
    """Runs no Spark: one epoch from a thread of its own, or a failure."""

    error: Exception | None = None
    verbose: bool | None = None

    def __init__(self, **settings: Any) -> None:
        type(self).verbose = settings["verbose"]
        output.sys.stderr.write("session is there\n")

    def __enter__(self) -> "FakeSession":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run_job(self, _: object, listener: Callable[[Mapping[str, Any]], None]) -> Any:
        import threading

        def wait() -> None:
            if self.error is not None:
                raise self.error
            thread = threading.Thread(target=listener, args=(EPOCH,))
            thread.start()
            thread.join()

        return SimpleNamespace(
            budget_is_hard=True, awaitTermination=wait, request_stop=None, summary=lambda: dict(SUMMARY)
        )


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("spillway.spark.session.Session", FakeSession)
    monkeypatch.setattr(FakeSession, "error", None)
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    return file


@pytest.fixture(autouse=True)
def normal() -> None:
    set_verbosity(Verbosity.NORMAL)


def test_a_run_shows_progress_and_its_summary(job: Path, call: Call) -> None:
    code, out, error = call("run", job)
    assert (code, out) == (0, "")
    first, epoch, summary, results = error.splitlines()
    assert first == "session is there"
    assert epoch.startswith("epoch 0 | 10 rows in")
    assert summary.startswith("10 rows in, 5 results in 1 epochs")
    assert results.startswith("results: ")
    assert FakeSession.verbose is False


def test_a_quiet_run_shows_nothing(job: Path, call: Call) -> None:
    assert call("run", job, "--quiet") == (0, "", "session is there\n")
    code, out, error = call("run", job, "-q", "--json")
    assert (code, error) == (0, "session is there\n")
    assert '"run_results": 5' in out
    assert "epoch 0" in call("run", job)[2], "the next command is not quiet"


def test_quiet_commands_show_errors(job: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeSession, "error", SinkError("the sink is full"))
    code, out, error = call("run", job, "--quiet")
    assert (code, out, error) == (1, "", "session is there\nerror: the sink is full\n")


def test_the_line_of_an_error_names_the_file_with_its_details(
    job: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error = SinkError("the sink\nis full")
    DetailLog(tmp_path / "spillway.log").record(error)
    monkeypatch.setattr(FakeSession, "error", error)
    code, out, shown = call("run", job, "--json")
    assert code == 1
    assert shown.splitlines()[-1] == f"error: the sink is full (details: {tmp_path}/spillway.log)"
    assert out == f'{{"error": "the sink is full", "kind": "SinkError", "log": "{tmp_path}/spillway.log"}}\n'
    assert "Traceback" not in shown


def test_a_verbose_command_shows_the_stack_trace_and_what_spark_says(
    job: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeSession, "error", SinkError("the sink is full"))
    _, _, error = call("run", job, "--verbose")
    assert FakeSession.verbose is True
    assert "Traceback (most recent call last)" in error and "test_verbosity.py" in error
    assert error.splitlines()[-1] == "error: the sink is full"


@pytest.mark.parametrize("words", [("--quiet", "--verbose"), ("-v", "-q")])
def test_quiet_and_verbose_exclude_each_other(job: Path, call: Call, words: tuple[str, ...]) -> None:
    code, _, error = call("run", job, *words)
    assert code == 2 and "exclude each other" in error


@pytest.mark.parametrize("command", ["run", "cleanup", "explain", "compute", "demo", "maintain"])
def test_commands_that_run_something_have_both(command: str, call: Call) -> None:
    out = call(command, "--help")[1]
    assert "--quiet" in out and "--verbose" in out


def test_a_disk_that_is_full_is_one_line_wherever_it_is(
    job: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeSession, "error", OSError(28, "No space left on device", "/data/report.html"))
    code, _, error = call("run", job)
    assert code == 1
    assert error.splitlines()[-1] == (
        "error: cannot write /data/report.html: No space left on device; free some space there, then run the "
        "command again"
    )


@pytest.mark.parametrize("verbosity", Verbosity)
def test_a_terminal_shows_that_spark_is_starting(
    verbosity: Verbosity, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    set_verbosity(verbosity)
    for spinner in (lambda: starting(output.STARTING_SPARK), ProgressLine, SegmentBars):
        with spinner():  # type: ignore[operator]
            pass
        shown = "starting Spark ..." in capsys.readouterr().err
        assert shown == (verbosity is Verbosity.NORMAL)


def test_elsewhere_nothing_is_said_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with starting(output.STARTING_SPARK), ProgressLine(), SegmentBars():
        pass
    assert capsys.readouterr().err == ""


def test_say_and_complain(capsys: pytest.CaptureFixture[str]) -> None:
    set_verbosity(Verbosity.QUIET)
    say("progress")
    complain("error")
    assert capsys.readouterr().err == "error\n"
