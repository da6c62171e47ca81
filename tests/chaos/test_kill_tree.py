"""kill -9 during the clean-up of a tree's levels, on Spark: the answer stays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.timeout(900)

FILES, ROWS, KEYS, WIDTH_BYTES = 3, 1_800, 900, 2_000
SQL = (
    "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, d.id AS d_id, a.p AS p FROM a, b, c, a d "
    f"WHERE a.k = b.k AND b.id % {KEYS} = c.k AND a.id % {KEYS} = d.k"
)
TREE = '[[["a", "b"], "c"], "d"]'
LIVES = [("staged", "cleanup-1:1"), ("committed", "cleanup-2:1")]


@pytest.fixture
def wide_streams(tmp_path: Path, make_stream: Callable[..., None]) -> Path:
    """Two rows per key and stream on average; the payload of `a` travels through all joins."""
    chance = np.random.default_rng(9)
    for name in "abc":
        make_stream(tmp_path / "wide" / name, chance.integers(0, KEYS, ROWS), FILES, WIDTH_BYTES)
    return tmp_path / "wide"


def test_a_killed_clean_up_of_any_level_changes_nothing(drivers: Any, wide_streams: Path) -> None:
    run = {
        "processors": 2,
        "memory": "4MB",
        "spill": "random",
        "spill_share": 0.7,
        "epoch_rows": 3_000,
        "epoch_results": 3_000,
    }
    lives = drivers(wide_streams, "parquet", sql=SQL, tree=TREE, **run)
    for place, epoch in LIVES:
        doomed = lives.start(place, epoch).wait_doomed()
        assert lives.job.committed() == (doomed if place == "staged" else doomed + 1)
    summary = lives.start().wait()
    assert summary["exit"] == 0
    assert lives.job.difference() == (0, 0)
    assert summary["results_cleanup"] > 0
    assert summary["results_runtime"] + summary["results_cleanup"] == lives.job.expected_results()
