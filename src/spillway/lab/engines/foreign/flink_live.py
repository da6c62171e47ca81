"""Flink's SQL join under live input: files that arrive, exactly-once checkpoints that make results visible.

A program (see `process`) for Flink's own environment, given what `flink_join` is given. It looks for new
files every 50 ms. Flink's file sink hides a file until the checkpoint that completes it and renames it then,
so every result waits for a checkpoint.

Known limit: text in and text out, because its Parquet format is not part of its Python package.
"""

import argparse
import json
import runpy
import subprocess
import sys
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

DISCOVERY = {"source.monitor-interval": "50 ms"}
POLL_SECONDS = 0.2
COMMON = runpy.run_path(str(Path(__file__).with_name("flink_join.py")))


def visible_files(results: Path) -> dict[str, float]:
    """Completed files, by the time at which each got its name."""
    return {str(file): file.stat().st_ctime for file in results.rglob("part-*")}


def count_lines(file: str) -> int:
    return Path(file).read_bytes().count(b"\n")


def run(job: dict[str, Any], out: Path, cores: int, checkpoint_ms: int) -> dict[str, Any]:
    """Start the query, feed it, wait for its results, cancel it."""
    live, results = out / "live", out / "results"
    results.mkdir()
    tables = COMMON["environment"](cores, checkpoint_ms, out)
    for stream in job["streams"]:
        (live / stream).mkdir(parents=True)
        tables.execute_sql(COMMON["table_sql"](stream, job["schema"], live / stream, **DISCOVERY))
    columns = COMMON["create_results"](tables, job["view"], results)
    client = tables.execute_sql(f"INSERT INTO results {job['view']}").get_job_client()
    began = time.perf_counter()
    subprocess.run(
        [
            sys.executable, "-I", job["feeder"], job["waiting"], str(live), str(out / job["arrivals_name"]),
            "--streams", ",".join(job["streams"]), "--drops", str(job["drops"]),
            "--interval-seconds", str(job["interval_seconds"]),
        ],
        check=True,
    )  # fmt: skip
    until = time.monotonic() + job["drain_seconds"]
    counts: dict[str, int] = {}
    while sum(counts.values()) < job["expected_results"] and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        counts |= {file: count_lines(file) for file in visible_files(results) if file not in counts}
    seconds = time.perf_counter() - began
    client.cancel().result()
    (out / job["visible_name"]).write_text(json.dumps(visible_files(results)))
    found = sum(counts.values())
    is_through = found >= job["expected_results"]
    given = f"exactly-once checkpoints every {checkpoint_ms} ms; text in, text out"
    return {
        "engine": job["engine"],
        "rows_in": job["rows_in"],
        "results": found,
        "seconds": seconds,
        "epoch_seconds": [],
        "finished": is_through,
        "output": str(results),
        "output_columns": columns,
        "note": given if is_through else f"{found} of {job['expected_results']} results; {given}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", type=json.loads)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--java-home", required=True)
    parser.add_argument("--checkpoint-ms", type=int, default=500)
    arguments = parser.parse_args()
    job = arguments.job
    runs = Path(job["out"])
    runs.mkdir(parents=True, exist_ok=True)
    COMMON["set_up"](arguments.java_home, runs)
    warm_up = Path(mkdtemp(prefix="run-", dir=runs))
    for number in range(job["warm_up_runs"]):
        out = warm_up / str(number)
        COMMON["run"](job, Path(job["warm_up"]), out, arguments.cores, arguments.checkpoint_ms)
    for _ in sys.stdin:
        out = Path(mkdtemp(prefix="run-", dir=runs))
        answer = run(job, out, arguments.cores, arguments.checkpoint_ms)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
