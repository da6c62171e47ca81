"""Runs that fail: one line on the screen names what the user knows, and the log has the rest."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kit.commands import Call
from spillway.errors import EvaluationError, SpillwayError, StateError, ViewError

if TYPE_CHECKING:
    from conftest import Lab

DIVISION = "SELECT p.k AS k, p.price / v.shares AS ratio FROM p, v WHERE p.k = v.k"


def fill(lab: "Lab", epochs: int = 1) -> None:
    keys = pa.array([1, 2, 3], pa.int64())
    for _ in range(epochs):
        lab.stream("p", pa.table({"k": keys, "price": pa.array([6.0, 7.0, 8.0])}))
        lab.stream("v", pa.table({"k": keys, "shares": pa.array([2.0, 0.0, 4.0])}))


def write_job(lab: "Lab", sql: str = DIVISION) -> Path:
    sources = "".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "data/{name}"\nschema = "k long, {column} double"\n'
        'options = { maxFilesPerTrigger = "1" }\n'
        for name, column in (("p", "price"), ("v", "shares"))
    )
    file = lab.directory / "job.toml"
    file.write_text(
        f'[view]\nsql = "{sql}"\n{sources}[run]\ncheckpoint = "state"\ntier = "tier"\nprocessors = 1\n'
        '[sink]\npath = "out"\n[spark]\n"spark.master" = "local[2,4]"\n'
    )
    return file


def told(lab: "Lab", view: str, **options: Any) -> SpillwayError:
    with pytest.raises(SpillwayError) as caught:
        lab.run(view, **options)
    return caught.value


def test_a_division_by_zero_names_the_columns_of_the_view(lab: "Lab") -> None:
    fill(lab)
    error = told(lab, DIVISION)
    assert isinstance(error, ViewError)
    assert str(error) == "division by zero; test the divisor in CASE WHEN (in p.price / v.shares)"
    log = (lab.checkpoint / "spillway.log").read_text()
    assert "ERROR Executor: Exception in task" in log, "what Spark logs"
    assert "state/join/production.py" in log, "the traceback of the worker"
    assert error.__notes__ == [f"details: {lab.checkpoint}/spillway.log"]


def test_a_condition_and_an_expression_of_one_input_are_named(lab: "Lab") -> None:
    fill(lab)
    error = told(lab, "SELECT p.k AS k FROM p, v WHERE p.k = v.k AND p.price % v.shares < 3")
    assert str(error).startswith(
        "remainder by zero; test the divisor in CASE WHEN (in (p.price % v.shares) < 3"
    )
    other = told(
        lab,
        "SELECT p.k / v.k AS r, v.k / (v.shares * 2) AS half FROM p, v WHERE p.k = v.k",
        checkpoint=str(lab.directory / "other"),
        path=str(lab.directory / "out2"),
    )
    assert isinstance(other, EvaluationError)
    assert str(other).startswith(
        "input v: division by zero; test the divisor in CASE WHEN (in k / (shares * 2))"
    )
    assert "SQLSTATE" not in str(other)


def test_a_sum_over_a_frame_that_overflows_is_named(lab: "Lab") -> None:
    stamps = pa.array([1_000_000, 2_000_000, 3_000_000], pa.timestamp("us", "UTC"))
    lab.stream("s", pa.table({"k": [1, 1, 1], "ts": stamps, "paid": pa.array([2**62] * 3, pa.int64())}))
    over = "OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW)"
    error = told(
        lab,
        f"SELECT k, sum(paid) {over} AS total FROM s",
        sources={"s": lab.source("s").withWatermark("ts", "0 seconds")},
        until="exhausted",
    )
    assert "a sum of bigint overflows" in str(error) and "(in sum(paid) over 10 s)" in str(error)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda whole: whole[:-100], "Parquet magic bytes not found"),
        (lambda whole: whole[:4] + b"\0" * 60 + whole[64:], ""),
    ],
    ids=["truncated", "overwritten"],
)
def test_a_damaged_input_file_is_named(lab: "Lab", command: Call, damage: Any, words: str) -> None:
    fill(lab, 2)
    victim = lab.directory / "data" / "v" / "0001.parquet"
    whole = victim.read_bytes()
    victim.write_bytes(damage(whole))
    os.utime(victim, (1_700_000_001, 1_700_000_001))
    sql = "SELECT p.k AS k, p.price AS price, v.shares AS shares FROM p, v WHERE p.k = v.k"
    code, output, error = command("run", write_job(lab, sql), "--json")
    line = error.splitlines()[-1]
    assert code == 1
    assert f"error: file {victim} cannot be read (" in line and words in line
    assert "write it again under the same name" in line
    answer = json.loads(output)
    assert answer["kind"] == "SourceError" and answer["log"] == str(lab.checkpoint / "spillway.log")
    assert line.endswith(f"(details: {answer['log']})")
    assert [text for text in error.splitlines() if not text.startswith("epoch ")] == [line]
    victim.write_bytes(whole)
    os.utime(victim, (1_700_000_001, 1_700_000_001))
    assert command("run", write_job(lab, sql), "--quiet") == (0, "", "")
    assert lab.results() == lab.duckdb(sql)
    again = command("run", write_job(lab, sql))[2].splitlines()[0]
    assert again == "the job is complete; total of its runs: 12 rows in, 12 results in 2 epochs"


@pytest.mark.parametrize("name", ["spark/metadata", "spark/offsets/0"])
def test_a_damaged_file_of_sparks_log_is_named(lab: "Lab", name: str) -> None:
    fill(lab)
    view = "SELECT p.k AS k FROM p, v WHERE p.k = v.k"
    lab.run(view, sources=lab.streams())
    fill(lab)
    (lab.checkpoint / name).write_text("garbage")
    error = told(lab, view, sources=lab.streams())
    assert isinstance(error, StateError)
    assert str(error).startswith(f"{lab.checkpoint}/{name}, a file of Spark's log, is corrupted; restore it")


def test_a_process_prints_one_line_and_everything_if_asked(lab: "Lab") -> None:
    """In a process of its own, whose JVM and workers write to a standard error that is not the screen."""
    fill(lab)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "spillway", "run", str(write_job(lab)), *words]
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=200)

    failed = run()
    path = lab.checkpoint / "spillway.log"
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == (
        f"error: division by zero; test the divisor in CASE WHEN (in p.price / v.shares) (details: {path})\n"
    )
    assert "ERROR Executor" in path.read_text()
    shown = run("--verbose").stderr
    assert "ERROR Executor" in shown and "Traceback" in shown and len(shown.splitlines()) > 100
    assert shown.splitlines()[-1] == failed.stderr.strip()
