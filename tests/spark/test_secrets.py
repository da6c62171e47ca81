"""A run whose password comes from the environment: no output, journal or checkpoint shows it."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SECRET = "hunter2&Co/7"
JOB = """
[view]
sql = "SELECT a.id AS p, b.id AS q FROM a, b WHERE a.k = b.k"
[sources.a]
format = "parquet"
path = "data/a"
options = { maxFilesPerTrigger = "1", password = "${DB_PASSWORD}" }
[sources.b]
format = "parquet"
path = "data/b"
[run]
checkpoint = "state"
processors = "${PROCESSORS:-2}"
[sink]
path = "out"
[spark]
"spark.master" = "local[2,4]"
"spark.hadoop.some.secret.key" = "${DB_PASSWORD}"
"""


def spillway(job: Path, password: str, *words: str) -> tuple[int, str]:
    """Run the command in a process of its own, so that what Spark's JVM prints is seen too."""
    command = [sys.executable, "-m", "spillway", *words, str(job)]
    environment = os.environ | {"DB_PASSWORD": password}
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, timeout=240, check=False
    )
    return ended.returncode, ended.stdout.decode()


def test_a_run_its_end_and_its_failure_show_no_secret(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / "data" / name).mkdir(parents=True)
        pq.write_table(pa.table({"k": [1, 2], "id": [3, 4]}), tmp_path / "data" / name / "0.parquet")
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    code, said = spillway(job, SECRET, "run")
    assert code == 0, said
    (tmp_path / "data" / "a" / "1.parquet").write_bytes(b"not a Parquet file")
    failed, more = spillway(job, f"{SECRET}-changed", "run")
    assert failed == 1 and "1.parquet" in more, more
    assert "hunter2" not in said + more
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert (tmp_path / "state" / "journal.jsonl") in files
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []
