"""`spillway compute`, `explain` and `calibrate` through the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spillway.workload.multi_join import generate_query

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def job(directory: Path, compute: str = "", where: str = "") -> Path:
    query = generate_query(4, 5, rows=(100, 150), result_rows=(100, 1_000))
    query.write(directory / "data")
    sources = "".join(
        f'[sources.{one.name}]\nformat = "parquet"\npath = "data/{one.name}"\n' for one in query.relations
    )
    file = directory / "job.toml"
    file.write_text(
        f'[view]\nsql = "{query.sql}{where}"\n{sources}[compute]\n{compute}\n'
        '[sink]\nformat = "parquet"\npath = "out"\n'
    )
    return file


def test_compute_and_explain(command: Command, tmp_path: Path) -> None:
    file = job(tmp_path, 'tree = "segmented-bushy"')
    code, output, error = command("explain", file, "--svg", tmp_path / "tree.svg")
    assert code == 0, error
    assert output.startswith("tree: segmented-bushy, ")
    assert (tmp_path / "tree.svg").read_text().startswith("<svg")
    kept = tmp_path / "cache" / "spillway" / "statistics"
    entries = list(kept.glob("*.npz"))
    assert len(entries) == 1
    stamp = entries[0].stat().st_mtime_ns
    code, output, error = command("compute", file, "--svg", tmp_path / "measured.svg", "--json")
    assert code == 0, error
    summary = json.loads(output)
    assert list(kept.glob("*.npz")) == entries, "the same files are not looked at twice"
    assert entries[0].stat().st_mtime_ns == stamp
    assert summary["rows"] == pq.read_table(tmp_path / "out").num_rows > 0
    final = summary["segments"][-1]
    assert final["joins"][-1]["measured_rows"] == summary["rows"]
    assert "measured" in (tmp_path / "measured.svg").read_text()
    code, output, _ = command("compute", file, "--json")
    assert code == 1
    assert "is not empty" in json.loads(output)["error"]


def test_a_failed_run_leaves_no_directory(command: Command, tmp_path: Path) -> None:
    file = job(tmp_path)
    text = file.read_text().replace('format = "parquet"\npath = "out"', 'format = "delta"\npath = "new/out"')
    file.write_text(text.replace("SELECT ", "SELECT r0.id / 0 AS x, ", 1))
    code, output, error = command("compute", file, "--json")
    assert code == 1
    told = json.loads(output)
    assert told["error"].startswith("r0.id / 0 AS x fails on a row: Division by zero. Use `try_divide`")
    assert error == f"error: {told['error']} (details: {told['log']})\n"
    assert "DIVIDE_BY_ZERO" in Path(told["log"]).read_text()
    Path(told["log"]).unlink()
    assert not (tmp_path / "new").exists()


def test_memory_for_a_part_of_the_hash_tables(command: Command, tmp_path: Path) -> None:
    file = job(tmp_path, 'memory = "40MB"', where=" WHERE r0.id >= 0")
    code, output, error = command("compute", file, "--json")
    assert code == 0, error
    summary = json.loads(output)
    assert summary["fits_memory"]
    assert len(summary["segments"]) > 1
    assert {one["kept"] for one in summary["segments"]} == {"written", "result"}
    assert 0 < summary["table_bytes_peak"] <= summary["memory_bytes"] == 40 << 20
    assert max(one["table_bytes"] for one in summary["segments"]) <= summary["memory_bytes"]


def test_calibrate_stores_costs_that_are_used(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spillway.spark.compute.calibrate.REPEATS", 1)
    code, output, error = command("calibrate", "--rows", "10000", "--json")
    assert code == 0, error
    costs = json.loads(output)
    assert Path(costs.pop("path")) == tmp_path / "cache" / "spillway" / "unit_costs.json"
    assert all(value > 0 for value in costs.values())
    (tmp_path / "cache" / "spillway" / "unit_costs.json").write_text("{}")
    code, _, error = command("explain", job(tmp_path))
    assert code == 1
    assert "run spillway calibrate again" in error
