"""The command line without Spark: plans, errors as one line and an exit code, progress."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kit.commands import Call
from kit.examples import examples
from spillway import __version__
from spillway.cli.output import ProgressLine
from spillway.cli.run import describe

SOURCES = "".join(
    f'[sources.{name}]\nformat = "parquet"\npath = "data/{name}"\nschema = "k long, id long"\n'
    for name in "abc"
)
SQL = "SELECT a.id AS p, b.id AS q FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.id < b.id"


def job(directory: Path, sql: str = SQL, sources: str = SOURCES) -> Path:
    for name in "abc":
        (directory / "data" / name).mkdir(parents=True, exist_ok=True)
    file = directory / "job.toml"
    file.write_text(
        f'[view]\nsql = "{sql}"\n{sources}[run]\ncheckpoint = "state"\nprocessors = 3\n[sink]\npath = "out"\n'
    )
    return file


def test_explain_needs_no_spark_when_the_job_has_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.setattr("spillway.spark.jvm.build.build_session", None)
    code, output, error = call("explain", job(tmp_path))
    assert (code, error) == (0, "")
    assert "a.id < b.id" in output
    code, output, _ = call("explain", job(tmp_path), "--json")
    assert code == 0
    assert isinstance(json.loads(output.splitlines()[-1]), dict)
    assert not (tmp_path / "state").exists()


def test_explain_shows_what_files_say_of_a_tree(tmp_path: Path, call: Call) -> None:
    """A checkpoint that is not on this machine is not asked for its tree."""
    file = job(tmp_path, "SELECT a.id AS p FROM a, b, c WHERE a.k = b.k AND b.id = c.id")
    file.write_text(file.read_text().replace('"state"', '"s3://nowhere/state"'))
    code, output, _ = call("explain", file)
    assert code == 0
    assert "as many inputs at once as share a key; no statistics: [sources.a] path = " in output
    for name, rows in (("a", 900), ("b", 90), ("c", 9)):
        numbers = pa.array(range(rows), pa.int64())
        pq.write_table(pa.table({"k": numbers, "id": numbers}), tmp_path / "data" / name / "0.parquet")
    code, output, _ = call("explain", file)
    assert code == 0
    assert "expected   (a (b c)): 18 candidates, 9 rows kept between joins" in output
    assert "rows       a 900, b 90, c 9" in output
    assert json.loads(call("explain", file, "--json")[1])["choice"]["chosen"]["tree"] == "(a (b c))"


@pytest.mark.parametrize(
    ("words", "key", "one"),
    [(("bench", "list"), "benchmarks", "tree"), (("figure", "list"), "figures", "7.13")],
)
def test_experiments_are_listed(call: Call, words: tuple[str, ...], key: str, one: str) -> None:
    code, output, _ = call(*words)
    assert code == 0 and one in output
    code, output, _ = call(*words, "--json")
    listed = {entry["name"]: entry for entry in json.loads(output)[key]}
    assert code == 0 and listed[one]["seed"] and listed[one]["section"] and listed[one]["expected"]


@pytest.mark.parametrize("command", ["run", "explain"])
def test_an_error_is_one_line_and_an_exit_code(tmp_path: Path, call: Call, command: str) -> None:
    missing = tmp_path / "nowhere.toml"
    told = f"job file {missing} cannot be read: No such file or directory; check its path"
    assert call(command, missing) == (1, "", f"error: {told}\n")
    code, output, error = call(command, missing, "--json")
    assert (code, error) == (1, f"error: {told}\n")
    assert json.loads(output) == {"error": told, "kind": "JobError"}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT a.nope FROM a, b WHERE a.k = b.k", "unknown column a.nope"),
        ("SELECT a.id FROM a, b WHERE a.k < b.k", "equi-join"),
        ("SELECT FROM WHERE", "SELECT"),
    ],
)
def test_explain_refuses_what_run_would(
    tmp_path: Path,
    call: Call,
    sql: str,
    message: str,
) -> None:
    code, output, error = call("explain", job(tmp_path, sql))
    assert (code, output) == (1, "")
    assert len(error.splitlines()) == 1
    assert error.startswith("error: ")
    assert message in error


def test_a_bad_schema_is_refused_by_name(tmp_path: Path, call: Call) -> None:
    bad = SOURCES.replace("k long, id long", "k long id", 1)
    code, _, error = call("explain", job(tmp_path, sources=bad))
    assert code == 1
    assert len(error.splitlines()) == 1
    assert "k long id" in error


def test_usage_errors_are_not_ours_to_hide(call: Call) -> None:
    code, _, error = call("run", "--nonsense")
    assert code == 2
    assert "--nonsense" in error


def test_the_demo_does_not_clear_a_directory_that_is_not_its_own(tmp_path: Path, call: Call) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    code, _, error = call("demo", "--directory", tmp_path)
    assert code == 1
    assert f"{tmp_path} is not empty and not a demo; choose another" in error
    assert (tmp_path / "precious.txt").read_text() == "mine"


def entry(sequence: int, **changes: Any) -> dict[str, Any]:
    processors = [{"resident_bytes": 2_000_000}, {"resident_bytes": 0}]
    return {
        "sequence": sequence,
        "input_rows": 1_000,
        "results": 50,
        "pending_rows": 0,
        "processors": processors,
    } | changes


def test_progress_off_a_terminal_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine() as line:
        line.epoch(entry(0))
        line.epoch(entry(1))
        line._shown -= 10
        line.epoch(entry(2, pending_rows=7))
    output, error = capsys.readouterr()
    assert output == ""
    first, second = error.splitlines()
    assert first.startswith("epoch 0 | 1,000 rows in")
    assert "epoch 2 | 3,000 rows in" in second
    assert second.endswith("| 150 results | 7 rows pending | memory 2, 0 MB")


def test_a_summary_in_words() -> None:
    summary = {
        "input_rows": 12_000,
        "results_runtime": 900,
        "results_cleanup": 100,
        "epochs": 3,
        "run_input_rows": 12_000,
        "run_results": 1_000,
        "run_epochs": 3,
        "complete": True,
        "seconds": 2.0,
        "resident_bytes_peak": [1_500_000, 0],
    }
    assert describe(summary) == (
        "12,000 rows in, 1,000 results in 3 epochs and 2.0 s (6,000 rows/s); "
        "peak state memory per processor: 1.5, 0.0 MB"
    )
    again = summary | {"input_rows": 20_000, "results_runtime": 1_900, "epochs": 5}
    assert describe(again) == (
        "12,000 rows in, 1,000 results in 3 epochs and 2.0 s (6,000 rows/s); "
        "peak state memory per processor: 1.5, 0.0 MB; "
        "total with earlier runs: 20,000 rows in, 2,000 results in 5 epochs"
    )
    none = {"run_input_rows": 0, "run_results": 0, "run_epochs": 0, "resident_bytes_peak": []}
    assert describe(again | none) == (
        "the job is complete; total of its runs: 20,000 rows in, 2,000 results in 5 epochs"
    )


def test_usage_errors_are_json_too(call: Call) -> None:
    for words, told in ((["run"], "Missing argument 'job'"), (["run", "--nonsense"], "No such option")):
        code, output, error = call(*words, "--json")
        assert code == 2
        answer = json.loads(output.splitlines()[-1])
        assert answer["kind"] == "UsageError" and told in answer["error"]
        assert answer["error"] in error


def test_the_version_is_told(call: Call) -> None:
    assert call("--version") == (0, f"spillway {__version__}\n", "")


@pytest.mark.slow
def test_a_process_ends_without_a_word_more(tmp_path: Path) -> None:
    """Libraries complain when Python ends before the command's thread has; a third of the time it did."""
    for _ in range(examples(20)):
        words = [sys.executable, "-m", "spillway", "explain", str(tmp_path / "nowhere.toml")]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1), ended.stderr


def test_explain_loads_neither_spark_nor_pandas(tmp_path: Path) -> None:
    """They take longer to load than a view takes to plan."""
    code = (
        "import sys; from spillway.cli.app import app\n"
        "app(['explain', sys.argv[1], '--json'], standalone_mode=False)\n"
        "print(sorted({'pyspark', 'pandas', 'duckdb', 'deltalake'} & sys.modules.keys()))"
    )
    sql = "SELECT a.id + 1 AS p, CASE WHEN b.id > 5 THEN a.id ELSE b.id END AS q FROM a, b WHERE a.k = b.k"
    words = [sys.executable, "-c", code, str(job(tmp_path, sql))]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"
