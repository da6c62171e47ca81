"""What a bounded run takes as the operating system counts it: anonymous memory and blocks of the tmpfs."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spillway.state.memory.tier_directory import TMPFS

CHILD = Path(__file__).parent / "bounded_run.py"
MEMORY_BYTES = 16 << 20
SLACK_BYTES = 2 << 20
"""What may come on top of the budget: Python's own objects, and pages that the C library keeps half used."""
WIDTH_BYTES = 250
MIX = np.uint64(0x9E3779B97F4A7C15)

pytestmark = pytest.mark.skipif(
    not (TMPFS.is_dir() and Path("/proc/self/smaps_rollup").exists()), reason="needs Linux with a tmpfs"
)


@pytest.fixture
def images() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="spillway-test-", dir=TMPFS))
    yield directory
    shutil.rmtree(directory)


def write_wire(path: Path, rows: int, keys: int, seed: int) -> None:
    """A wire batch of three inputs with wide rows, in a file that can be mapped."""
    random = np.random.default_rng(seed)
    hashes = (random.integers(0, keys, rows).astype(np.uint64) * MIX).view(np.int64)
    offsets = np.arange(0, rows * WIDTH_BYTES + 1, WIDTH_BYTES, dtype=np.int32)
    text = random.integers(97, 122, rows * WIDTH_BYTES, dtype=np.uint8)
    payload = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))
    tags = pa.array(random.integers(0, 3, rows).astype(np.int8))
    columns = [tags, pa.array(hashes), pa.array(np.arange(rows)), payload]
    batch = pa.RecordBatch.from_arrays(columns, names=["t", "h", "s0", "s1"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)


def anonymous_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def image_bytes(directory: Path) -> int:
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.stat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH116, PTH118
            except FileNotFoundError:
                continue  # removed meanwhile
    return total


def test_the_operating_system_sees_no_more_than_the_budget(tmp_path: Path, images: Path) -> None:
    for number in range(2):
        write_wire(tmp_path / "warm-up" / f"{number}.arrow", 10_000, 6_000, number)
        write_wire(tmp_path / "run" / f"{number}.arrow", 32_000, 20_000, 10 + number)
    command = [sys.executable, str(CHILD), str(tmp_path), str(images), str(MEMORY_BYTES)]
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        shutil.rmtree(images / "warm-up")
        before = anonymous_bytes(child.pid)
        said: list[str] = []
        listener = threading.Thread(target=lambda: said.append(child.stdout.readline()))  # type: ignore[union-attr]
        listener.start()
        child.stdin.write("go\n")
        child.stdin.flush()
        peak = 0
        while not said:
            peak = max(peak, anonymous_bytes(child.pid) - before + image_bytes(images))
            time.sleep(0.001)
        listener.join()
        child.communicate("end\n", timeout=60)
    counted = int(said[0])
    print(f"counted {counted / 1e6:.1f} MB, seen {peak / 1e6:.1f} MB, budget {MEMORY_BYTES / 1e6:.1f} MB")
    assert child.returncode == 0
    assert MEMORY_BYTES // 2 < counted <= MEMORY_BYTES
    assert counted // 2 < peak <= MEMORY_BYTES + SLACK_BYTES
