"""`spillway demo` adapts, gives the right answer, and leaves a report behind."""

import json
from collections.abc import Callable
from pathlib import Path

from spillway.job import read_job

Command = Callable[..., tuple[int, str, str]]


def test_demo(command: Command, tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    words = ("demo", "--directory", directory, "--rows", 120_000, "--files", 12, "--memory", "4MB", "--json")
    code, output, error = command(*words)
    assert code == 0, error
    summary = json.loads(output)  # nothing else is printed
    assert summary["exact"] and summary["complete"]
    assert summary["spills"] and summary["relocations"] and summary["results_cleanup"]
    assert summary["duckdb_rows"] == summary["results_runtime"] + summary["results_cleanup"] > 0
    assert max(summary["memory_bytes_peak"]) <= 4 << 20
    assert (
        "spilled" in error and "moved from processor 0 to processor 1" in error and "clean-up added" in error
    )
    assert Path(summary["report"]).read_text().lstrip().startswith("<!")
    assert read_job(summary["job"]).run.checkpoint == str(directory / "state")
    code, output, error = command("demo", "--directory", directory, "--rows", 1_000, "--files", 2)
    assert code == 0, error
    assert "Well-reviewed stocks" in output
    exact, budget, report, results = error.splitlines()[-4:]
    assert exact.startswith("exact: DuckDB computes the same ")
    assert budget.startswith("within budget: ") and budget.endswith(" of its 5MB")
    assert report == f"report: {directory / 'report.html'}"
    assert results == f"results: {directory / 'out'} (Delta); job file: {directory / 'job.toml'}"
