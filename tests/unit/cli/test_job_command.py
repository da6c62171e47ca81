"""`spillway job`: files are checked without starting anything, reference and schema are printed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kit.commands import Call

JOB = """
[view]
sql = "SELECT a.k FROM a JOIN b ON a.k = b.k"
[sources.a]
format = "parquet"
path = "nowhere"
[sources.b]
format = "parquet"
path = "nowhere"
[run]
checkpoint = "state"
[compute]
[sink]
path = "out"
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "job.toml"


def test_a_job_is_checked(job: Path, call: Call) -> None:
    right = "keys and values are right, for spillway run and spillway compute"
    said = f"{job}: {right}; spillway explain checks view and sources\n"
    assert call("job", "check", job) == (0, "", said)
    code, output, _ = call("job", "check", job, "--json")
    assert (code, json.loads(output)) == (
        0,
        {"job": str(job), "valid": True, "commands": ["run", "compute"]},
    )
    job.write_text(JOB.replace("checkpoint", "chekpoint"))
    told = f"job file {job}: unknown key chekpoint in [run]; did you mean checkpoint?"
    assert call("job", "check", job) == (1, "", f"error: {told}\n")
    code, output, _ = call("job", "check", job, "--json")
    assert (code, json.loads(output)) == (1, {"error": told, "kind": "JobError"})
    job.write_text(JOB.replace("[compute]", '[compute]\nway = "fast"'))
    assert call("job", "check", job)[0] == 1, "all commands of the file count"


def test_schema_and_reference_are_printed(call: Call) -> None:
    code, output, _ = call("job", "schema")
    assert (code, json.loads(output)["title"]) == (0, "Spillway job file")
    code, line, _ = call("job", "schema", "--json")
    assert (code, json.loads(line)) == (0, json.loads(output))
    assert line.count("\n") == 1
    code, output, _ = call("job", "reference")
    assert (code, output.startswith("# Job file\n"), "| `checkpoint` | path | required |" in output) == (
        0,
        True,
        True,
    )
    code, output, _ = call("job", "reference", "--json")
    assert (code, json.loads(output)["tables"][0]["table"]) == (0, "[view]")


def test_help_imports_neither_registries_nor_libraries() -> None:
    """The help is there at once: what a command needs is imported when it runs."""
    code = (
        "import sys; sys.argv = ['spillway', '--help']\n"
        "import spillway.cli.app as cli\n"
        "try: cli.app()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'pyspark', 'sqlglot', 'spillway.job', 'spillway.maintain'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "maintain" in ended.stdout
