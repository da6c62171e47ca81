"""Hosts that do not share a path, or lack memory, are refused by name; after a run none keeps images."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from conftest import Cluster

DRIVER = Path(__file__).parent / "cluster_driver.py"
SQL = "SELECT a.id AS p, b.id AS q FROM a, b WHERE a.k = b.k"
pytestmark = pytest.mark.timeout(240)  # six JVMs start


def write_streams(root: Path) -> None:
    random = np.random.default_rng(3)
    for name in "ab":
        (root / name).mkdir()
        for number in range(3):
            table = pa.table({"k": random.integers(0, 500, 1_000), "id": np.arange(1_000) + 1_000 * number})
            pq.write_table(table, root / name / f"{number}.parquet")


def write_job(root: Path, name: str, checkpoint: Path, out: Path, run: str = "") -> Path:
    sources = "".join(
        f'[sources.{one}]\nformat = "parquet"\npath = "{root / one}"\nschema = "k long, id long"\n'
        'options = { maxFilesPerTrigger = "1" }\n'
        for one in "ab"
    )
    file = root / f"{name}.toml"
    file.write_text(
        f'[view]\nsql = "{SQL}"\n{sources}'
        f'[run]\ncheckpoint = "{checkpoint}"\nprocessors = 2\ngroups = 16\n{run}\n'
        f'[sink]\nformat = "parquet"\npath = "{out}"\n'
    )
    return file


@pytest.fixture(scope="module")
def outcomes(cluster: "Cluster") -> dict[str, dict[str, Any]]:
    """Four jobs, one after the other, and what became of each."""
    root = cluster.root
    write_streams(root)
    jobs = [
        write_job(root, "own-checkpoint", cluster.private / "state", root / "out-1"),
        write_job(root, "own-sink", root / "state-2", cluster.private / "out"),
        write_job(root, "no-memory", root / "state-3", root / "out-3", 'memory = "64MB"'),
        write_job(root, "served", root / "state-4", root / "out-4", 'memory = "16MB"'),
    ]
    with (root / "driver.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, str(DRIVER), cluster.url, *map(str, jobs)],
            stdout=subprocess.PIPE, stderr=log, text=True, timeout=200, cwd=root,
        )  # fmt: skip
    assert done.returncode == 0, (root / "driver.log").read_text()[-3_000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(line["job"]).stem: line for line in lines}


def test_a_checkpoint_that_hosts_do_not_share_is_refused(
    cluster: "Cluster", outcomes: dict[str, dict[str, Any]]
) -> None:
    text = outcomes["own-checkpoint"]["error"]
    for host in ("h1", "h2"):
        assert (
            f"host {host} does not see what the driver wrote to the checkpoint {cluster.private}/state"
            in text
        )
        assert cluster.inside(host, "ls", "-A", str(cluster.private)).split() == [host]
    assert "all hosts must share it" in text and "\n" not in text
    assert not (cluster.private / "state").exists() and not (cluster.root / "out-1").exists()


def test_a_sink_that_hosts_do_not_share_is_refused(
    cluster: "Cluster", outcomes: dict[str, dict[str, Any]]
) -> None:
    text = outcomes["own-sink"]["error"]
    assert f"host h1 does not see what the driver wrote to the sink {cluster.private}/out" in text
    assert "checkpoint" not in text
    assert not (cluster.root / "state-2").exists() and not (cluster.private / "out").exists()


def test_a_host_with_too_little_memory_is_named(outcomes: dict[str, dict[str, Any]]) -> None:
    text = outcomes["no-memory"]["error"]
    assert text.startswith("host h2 has 40 MB free in /dev/shm/") and "but needs 64 MB" in text
    assert "h1" not in text


def test_a_query_on_both_hosts_is_exact_and_leaves_no_images(
    cluster: "Cluster", outcomes: dict[str, dict[str, Any]]
) -> None:
    assert outcomes["served"].get("hosts") == ["h1", "h2"], outcomes
    with duckdb.connect() as database:
        for name in "ab":
            database.execute(f"CREATE VIEW {name} AS FROM '{cluster.root}/{name}/*.parquet'")
        database.execute(f"CREATE VIEW found AS FROM '{cluster.root}/out-4/*.parquet'")
        database.execute(f"CREATE TABLE expected AS {SQL}")
        assert database.sql("FROM expected EXCEPT ALL FROM found").fetchall() == []
        assert database.sql("FROM found EXCEPT ALL FROM expected").fetchall() == []
        assert database.sql("SELECT count(*) > 10000 FROM found").fetchall() == [(True,)]
    assert {host: cluster.images(host) for host in ("h1", "h2")} == {"h1": [], "h2": []}
