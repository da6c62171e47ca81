"""What Spark's Python workers take as the operating system counts it, over whole runs, with both file sinks.

Known limit: of what two tasks take at once, only the sum is compared with the sum of their budgets.
"""

import shutil
import tempfile
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pyarrow as pa
import pytest

from kit.memory_watch import MemorySample, MemoryWatch, is_possible
from kit.wide_rows import payload
from spillway.manager.journal.entry import EpochEntry, EpochKind
from spillway.manager.journal.file import FILE_NAME, read_journal
from spillway.spark.stream.file_rows import FEW_ROWS
from spillway.state.memory.tier_directory import TMPFS

if TYPE_CHECKING:
    from conftest import Lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_possible(), reason="needs Linux with a tmpfs"),
]

MEMORY_BYTES, PROCESSORS = 8 << 20, 2
BUDGET_BYTES = PROCESSORS * MEMORY_BYTES
SLACK_BYTES = 2 << 20
"""Per processor: Python's own objects, and pages that the C library keeps half used."""
SCAN_BYTES = 6 << 20
"""What a scan task takes, which is outside of any budget: pages of Parquet, and a batch in several copies."""
FILES, ROW_BYTES = 4, 40
SHIPPED_WIDTH, SCANNED_WIDTH = 400, 100
"""Of few wide rows, which the driver reads itself, and of many narrow ones, which tasks read."""
TIMES_MEMORY = 3
WARM_UP_ROWS = 400
REFRESH_SECONDS = 0.2
VIEWS = {
    "join": "SELECT a.id AS a, b.id AS b, c.id AS c, a.p AS ap, b.p AS bp, c.p AS cp "
    "FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x",
    "tree": "SELECT a.id AS a, b.id AS b, c.id AS c, a.p AS ap, b.p AS bp, c.p AS cp "
    "FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y",
}


@pytest.fixture
def tier() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="spillway-test-", dir=TMPFS))
    yield directory
    shutil.rmtree(directory)


def python_workers() -> Callable[[], list[int]]:
    """Lists Spark's Python workers; anew only now and then, because it takes long."""
    found: list[int] = []
    listed = 0.0

    def pids() -> list[int]:
        nonlocal listed
        if time.monotonic() - listed > REFRESH_SECONDS:
            found[:] = [child.pid for child in psutil.Process().children(recursive=True) if _is_worker(child)]
            listed = time.monotonic()
        return found

    return pids


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any("pyspark" in word and "daemon" in word for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def table(rows: int, keys: int, width: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    columns = {"id": np.arange(rows) + seed * rows}
    columns |= {name: chance.integers(0, keys, rows) for name in "xy"}
    return pa.table(columns).append_column("p", payload("text", width, rows, chance))


@pytest.mark.parametrize(
    ("shape", "sink", "width"),
    [
        *((shape, sink, SHIPPED_WIDTH) for shape in sorted(VIEWS) for sink in ("parquet", "delta")),
        *((shape, "parquet", SCANNED_WIDTH) for shape in sorted(VIEWS)),
    ],
)
def test_workers_stay_inside_the_budget(
    lab: "Lab", tmp_path_factory: pytest.TempPathFactory, tier: Path, shape: str, sink: str, width: int
) -> None:
    warm = type(lab)(lab.spark, tmp_path_factory.mktemp("warm-up"))
    rows = TIMES_MEMORY * BUDGET_BYTES // (width + ROW_BYTES) // 3 // FILES
    assert (3 * rows > FEW_ROWS) == (width == SCANNED_WIDTH)
    for number, name in enumerate("abc"):
        warm.stream(name, *(table(WARM_UP_ROWS, WARM_UP_ROWS, width, 10 * number + n) for n in range(FILES)))
        lab.stream(name, *(table(rows, rows * FILES, width, 100 + 10 * number + n) for n in range(FILES)))
    options = {"processors": PROCESSORS, "groups": 32, "memory_bytes": MEMORY_BYTES, "sink": sink}
    warm.run(VIEWS[shape], tier=str(tier), **options)
    with MemoryWatch(python_workers(), tier) as watch:
        summary = lab.run(VIEWS[shape], tier=str(tier), **options)
    assert summary["results_runtime"] > 0 and summary["results_cleanup"] > 0
    assert lab.results(sink) == lab.duckdb(VIEWS[shape])
    peaks = peaks_by_kind(watch.samples, list(read_journal(lab.checkpoint / FILE_NAME)))
    for kind, peak in peaks.items():
        print(
            f"{kind.value}: {peak.bytes / 1e6:.1f} MB seen (anonymous {peak.anonymous_bytes / 1e6:.1f}, "
            f"images {peak.image_bytes / 1e6:.1f}), budget {BUDGET_BYTES / 1e6:.1f}"
        )
    slack = SLACK_BYTES + (SCAN_BYTES if width == SCANNED_WIDTH else 0)
    assert max(peak.bytes for peak in peaks.values()) <= BUDGET_BYTES + PROCESSORS * slack


def peaks_by_kind(
    samples: Sequence[MemorySample], entries: Sequence[EpochEntry]
) -> dict[EpochKind, MemorySample]:
    """The most that was seen, in epochs with input and in those of clean-up; between two epochs the first
    of them counts."""
    starts = [entry.time for entry in entries]
    peaks: dict[EpochKind, MemorySample] = {}
    for sample in samples:
        kind = entries[max(0, bisect(starts, sample.at) - 1)].kind
        if kind not in peaks or sample.bytes > peaks[kind].bytes:
            peaks[kind] = sample
    return peaks
