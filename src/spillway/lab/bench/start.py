"""The benchmark `start`: from the start of the command to the first result in the sink, beyond what bare
PySpark needs for its first Python job.

Both are new processes without a warm-up, in turns; the median of the differences counts. The job joins two
small Parquet streams, as one that a new user writes.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from spillway.errors import JobError
from spillway.lab.engines import SHAPES, bare_pyspark_argv

MASTER = "local[2,4]"
LIMIT_SECONDS = 120.0
LOOK_SECONDS = 0.005
JOB = """
[view]
sql = "{sql}"

[sources.a]
format = "parquet"
path = "data/a"

[sources.b]
format = "parquet"
path = "data/b"

[run]
checkpoint = "state"

[sink]
format = "parquet"
path = "out"

[spark]
"spark.master" = "{master}"
"""
SQL = "SELECT a.id AS x, b.id AS y FROM a JOIN b ON a.k = b.k"


def bench_start(*, rows: int, repeats: int, note: Callable[[str], None]) -> dict[str, Any]:
    """Runs both sides in turns."""
    with tempfile.TemporaryDirectory(prefix="spillway-bench-start-") as scratch:
        root = Path(scratch)
        SHAPES["join"].write(root / "data", rows=rows, files=1)
        (root / "job.toml").write_text(JOB.format(sql=SQL, master=MASTER))
        bare: list[float] = []
        own: list[float] = []
        for turn in range(repeats):
            bare.append(_bare_seconds())
            own.append(_first_result_seconds(root))
            note(f"turn {turn}: bare PySpark {bare[-1]:.1f} s, first result {own[-1]:.1f} s")
    differences = [first - python for first, python in zip(own, bare, strict=True)]
    return {
        "bench": "start",
        "rows": rows,
        "repeats": repeats,
        "bare_pyspark_seconds": [round(seconds, 2) for seconds in bare],
        "first_result_seconds": [round(seconds, 2) for seconds in own],
        "beyond_bare_seconds": round(median(differences), 2),
    }


def _bare_seconds() -> float:
    began = time.perf_counter()
    with subprocess.Popen(
        bare_pyspark_argv(MASTER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise JobError("bench start: bare PySpark gave no answer; run it alone to see why")
        seconds = time.perf_counter() - began
        process.communicate(b"\n", LIMIT_SECONDS)
    return seconds


def _first_result_seconds(root: Path) -> float:
    """From the start of `spillway run` to its first file of results."""
    command = [sys.executable, "-m", "spillway", "run", "job.toml", "--quiet"]
    began = time.perf_counter()
    found: float | None = None
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE) as process:
        while process.poll() is None and time.perf_counter() - began < LIMIT_SECONDS:
            if found is None and next((root / "out").glob("*.parquet"), None) is not None:
                found = time.perf_counter() - began
            time.sleep(LOOK_SECONDS)
        process.kill()
        assert process.stderr is not None
        said = process.stderr.read().decode().strip()
    if found is None:
        raise JobError(f"bench start: no result: {said.splitlines()[-1] if said else 'it said nothing'}")
    for name in ("state", "out"):
        _removed(root / name)
    return found


def _removed(directory: Path) -> None:
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()
