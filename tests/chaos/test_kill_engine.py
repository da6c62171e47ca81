"""kill -9 at every place of every kind of epoch, without Spark: the sink holds DuckDB's answer, row for row.

The tests with Spark beside this one end a few lives of each mechanism; this one ends them everywhere.
"""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ENGINE = Path(__file__).parent / "doomed_engine.py"
PLACES = ("halfway", "staged", "committed", "sunk")
JOIN = "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, a.p AS p FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
TREE = (
    "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, d.id AS d_id, a.p AS p FROM a, b, c, d "
    "WHERE a.k = b.k AND b.j = c.k AND a.j = d.k"
)
SPILLING = {"memory_bytes": 4 << 20, "run": {"processors": 2, "spill": "random", "spill_share": 0.1}}
# Per history: the view, the settings, files, rows and keys of each stream, bytes of a payload, and the kinds
# of epochs in which lives end. The limits make many epochs of each kind.
HISTORIES: dict[str, tuple[str, dict[str, Any], tuple[int, int, int, int], list[str]]] = {
    "plain": (JOIN, {"run": {"processors": 3}}, (10, 1_000, 500, 20), ["epoch:1", "epoch:2"]),
    "hot key": (JOIN, {"run": {"processors": 2}, "limits": {"results": 4_000}}, (2, 60, 1, 20),
                ["row:1", "row:2"]),
    "spill": (JOIN, SPILLING | {"limits": {"rows": 1_000, "results": 50}}, (6, 4_000, 4_000, 2_000),
              ["spill:1", "cleanup:1"]),
    "rotation": (JOIN, {"memory_bytes": 4 << 20, "limits": {"rows": 1_000},
                 "run": {"processors": 2, "rotation": True}}, (4, 4_000, 4_000, 2_000), ["turn:1"]),
    "relocation": (JOIN, {"moves": True, "load_bytes": 60_000, "run": {"processors": 3}},
                   (32, 4_000, 2_000, 200), ["load:1", "switch:1"]),
    "tree": (TREE, {"memory_bytes": 4 << 20, "limits": {"rows": 1_000, "results": 500},
             "run": {"processors": 2, "spill": "random", "spill_share": 0.7}}, (3, 1_800, 900, 2_000),
             ["spill:1", "cleanup-0:1", "cleanup-1:1", "cleanup-2:1"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def ended() -> Iterator[Callable[[dict[str, Any]], int]]:
    """Has a life lived; its exit code, negative for a signal."""
    with subprocess.Popen(
        [sys.executable, str(ENGINE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as engine:

        def live(life: dict[str, Any]) -> int:
            assert engine.stdin is not None and engine.stdout is not None
            engine.stdin.write(json.dumps(life) + "\n")
            engine.stdin.flush()
            return int(engine.stdout.readline())

        yield live
        engine.communicate(timeout=20)


def write_streams(root: Path, files: int, rows: int, keys: int, width_bytes: int) -> None:
    chance = np.random.default_rng(8)
    for name in "abcd":
        (root / name).mkdir(parents=True)
        k, j = chance.integers(0, keys, (2, rows))
        ids = np.arange(rows)
        table = pa.table({"k": k, "j": j, "id": ids, "p": [f"{one}".ljust(width_bytes, "-") for one in ids]})
        share = -(-rows // files)
        for number in range(files):
            pq.write_table(table.slice(number * share, share), root / name / f"{number:04d}.parquet")


def committed(root: Path) -> int:
    names = (root / "state" / "manifest").glob("*.json")
    return max((int(path.name.split(".")[0]) + 1 for path in names), default=0)


@pytest.mark.parametrize(
    ("name", "sink"), [("plain", "parquet"), *zip(HISTORIES, cycle(("delta", "parquet")), strict=False)]
)
def test_a_life_may_end_anywhere(
    quick_directory: Callable[[], Path], job_directory: Any, ended: Any, name: str, sink: str
) -> None:
    sql, settings, shape, kinds = HISTORIES[name]
    root = quick_directory()
    write_streams(root / "streams", *shape)
    life = {"root": str(root), "sink": sink, "limits": {}} | settings
    if sql == TREE:
        life["tree"] = TREE
    try:
        for kind, place in product(kinds, PLACES):
            before = committed(root)
            assert ended(life | {"doom": (place, kind)}) == -signal.SIGKILL, (kind, place)
            assert committed(root) > before or place in ("halfway", "staged")
        assert ended(life | {"doom": ("nowhere", "0")}) == 0
        job = job_directory(root, root / "streams", sink, sql)
        assert job.difference() == (0, 0)
        summary = json.loads((root / "summary.json").read_text())
        assert summary["runtime"] > 0
        assert summary["runtime"] + summary["cleanup"] == job.expected_results()
        assert (summary["cleanup"] > 0) == (summary["spills"] > 0) == (name in ("spill", "tree"))
    finally:
        shutil.rmtree(root)
