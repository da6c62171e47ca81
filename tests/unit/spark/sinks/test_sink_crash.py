"""Whatever dies inside a commit, and however often: each row of every epoch is in the sink once."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import dataset

from spillway.manager import StagedEpoch
from spillway.spark.sinks.delta import DeltaSink
from spillway.spark.sinks.parquet import ParquetSink
from spillway.spark.sinks.sink import Sink
from spillway.state.storage.storage import Storage

FORMATS = ("delta", "parquet")


class Crash(BaseException):
    """The process died here: not an Exception, so that no handler can go on."""


class Fuse:
    """Burns through after a number of operations."""

    def __init__(self, operations: int | None = None) -> None:
        self.left = operations

    def burn(self) -> None:
        if self.left is None:
            return
        if self.left == 0:
            raise Crash
        self.left -= 1


class CrashingStorage(Storage):
    """A storage whose changes stop when the fuse is through."""

    __slots__ = ("fuse",)

    def __init__(self, root: str, fuse: Fuse) -> None:
        super().__init__(root)
        self.fuse = fuse

    def write(self, *args: Any, **options: Any) -> None:
        self.fuse.burn()
        super().write(*args, **options)

    def create_exclusive(self, *args: Any, **options: Any) -> bool:
        self.fuse.burn()
        return super().create_exclusive(*args, **options)

    def move(self, source: str, target: str) -> None:
        self.fuse.burn()
        super().move(source, target)

    def make_directories(self, path: str = "") -> None:
        self.fuse.burn()
        super().make_directories(path)

    def delete(self, paths: Any) -> None:
        for path in paths:
            self.fuse.burn()
            super().delete([path])


class CrashingDeltaSink(DeltaSink):
    """A Delta sink that can also die around the two changes that deltalake makes itself."""

    __slots__ = ("fuse",)

    def __init__(self, storage: CrashingStorage) -> None:
        super().__init__(storage)
        self.fuse = storage.fuse

    def _create(self, *args: Any) -> None:
        self.fuse.burn()
        super()._create(*args)
        self.fuse.burn()

    def _append(self, *args: Any) -> None:
        self.fuse.burn()
        super()._append(*args)
        self.fuse.burn()


def reopen(sink_format: str, root: str, operations: int | None) -> Sink:
    storage = CrashingStorage(root, Fuse(operations))
    return CrashingDeltaSink(storage) if sink_format == "delta" else ParquetSink(storage)


def read_ids(sink_format: str, root: str) -> list[int]:
    if sink_format == "delta":
        table = DeltaTable(root).to_pyarrow_table()
    else:
        table = dataset.dataset(root, schema=pa.schema([("id", pa.int64())])).to_table()
    return sorted(table.column("id").to_pylist())


epochs_of_file_sizes = st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=4)
crash_points = st.lists(st.integers(0, 9), max_size=8)


@pytest.mark.parametrize("sink_format", FORMATS)
@settings(max_examples=settings().max_examples * 3 // 4)
@given(sizes=epochs_of_file_sizes, crashes=crash_points, repeats=st.randoms(use_true_random=False))
def test_random_crashes_lose_and_repeat_nothing(
    tasks: Any,
    quick_directory: Callable[[], Path],
    sink_format: str,
    sizes: list[list[int]],
    crashes: list[int],
    repeats: random.Random,
) -> None:
    ids = itertools.count()
    root = str(quick_directory() / "out")
    fuses = iter(crashes)
    manifest: list[StagedEpoch] = []
    committed = -1
    while len(manifest) < len(sizes) or manifest[-1].sequence > committed:
        operations = next(fuses, None)
        sink = reopen(sink_format, root, operations)
        committed = -1
        try:
            sink.prepare(tasks.query_id, tasks.schema)
            committed = sink.last_committed(tasks.query_id)
            # After a restart the commits that the sink has not seen are repeated from the manifest.
            for epoch in manifest[committed + 1 :]:
                sink.commit(epoch)
            for sequence in range(len(manifest), len(sizes)):
                files = [[next(ids) for _ in range(size)] for size in sizes[sequence]]
                manifest.append(tasks.stage(sink.staging, sequence, files))
                sink.commit(manifest[-1])
                if repeats.random() < 0.5:
                    sink.commit(repeats.choice(manifest))
            committed = sink.last_committed(tasks.query_id)
        except Crash:
            continue
    assert committed == len(sizes) - 1
    assert sum(epoch.rows for epoch in manifest) == len(read_ids(sink_format, root))
    assert read_ids(sink_format, root) == list(range(next(ids)))
    assert reopen(sink_format, root, None).sweep([]) == 0


@pytest.mark.parametrize("sink_format", FORMATS)
def test_every_single_crash_point_of_one_commit(tasks: Any, sink_format: str, tmp_path: Path) -> None:
    for operations in itertools.count():
        root = str(tmp_path / str(operations))
        first = reopen(sink_format, root, None)
        first.prepare(tasks.query_id, tasks.schema)
        first.commit(tasks.stage(first.staging, 0, [[0, 1]]))
        epoch = tasks.stage(first.staging, 1, [[2], [3, 4], [5]])
        dying = reopen(sink_format, root, None)
        dying.prepare(tasks.query_id, tasks.schema)
        fuse = (dying if sink_format == "delta" else dying._storage).fuse  # type: ignore[attr-defined]
        fuse.left = operations
        try:
            dying.commit(epoch)
            finished = True
        except Crash:
            finished = False
        again = reopen(sink_format, root, None)
        again.prepare(tasks.query_id, tasks.schema)
        again.commit(epoch)
        first.commit(epoch)  # A driver that was thought dead, with what it knew before.
        assert again.last_committed(tasks.query_id) == 1
        assert read_ids(sink_format, root) == list(range(6))
        if finished:
            break
    assert operations >= 5


# Imports once and forks a writer per line of input, which ends by being killed: imports are most of a start.
WRITERS = """
import os, sys
from conftest import TASKS
from spillway.spark.sinks import open_sink
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        sink_format, root = line.rstrip().split(" ", 1)
        sink = open_sink(sink_format, root, checkpoint_dir=root + "-checkpoint")
        sink.prepare(TASKS.query_id, TASKS.schema)
        for sequence in range(sink.last_committed(TASKS.query_id) + 1, 100_000):
            sink.commit(TASKS.stage(sink.staging, sequence, [[2 * sequence], [2 * sequence + 1]]))
            print(sequence, flush=True)
        sys.exit("nobody killed this writer")
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


@pytest.fixture(scope="module")
def writers() -> Iterator["subprocess.Popen[str]"]:
    path = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", WRITERS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        yield process
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("sink_format", FORMATS)
def test_kill_9_in_a_loop_of_commits(tasks: Any, writers: Any, sink_format: str, tmp_path: Path) -> None:
    root = str(tmp_path / "out")
    reported = -1
    for delay_seconds in (0.0, 0.001, 0.004):
        print(sink_format, root, file=writers.stdin, flush=True)
        writer = int(writers.stdout.readline())
        lines = [writers.stdout.readline() for _ in range(12)]
        time.sleep(delay_seconds)
        os.kill(writer, signal.SIGKILL)
        reported = int((lines + list(iter(writers.stdout.readline, "dead\n")))[-1])
    sink = reopen(sink_format, root, None)
    sink.prepare(tasks.query_id, tasks.schema)
    last = sink.last_committed(tasks.query_id)
    assert reported <= last <= reported + 1
    sink.commit(tasks.stage(sink.staging, last + 1, [[2 * last + 2], [2 * last + 3]]))
    assert read_ids(sink_format, root) == list(range(2 * last + 4))


def test_the_sinks_need_no_spark_to_be_imported() -> None:
    code = "import sys, spillway.spark.sinks; sys.exit('pyspark' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0


def test_the_read_back_would_notice_a_repeated_file(tmp_path: Path) -> None:
    table = pa.table({"id": [1]})
    for name in ("a", "b"):
        dataset.write_dataset(
            table,
            tmp_path,
            format="parquet",
            basename_template=name + "{i}.parquet",
            existing_data_behavior="overwrite_or_ignore",
        )
    assert read_ids("parquet", str(tmp_path)) == [1, 1]
