"""Real drivers in processes of their own, to be killed: a data set, the driver as a handle, the right answer.

Every driver has a session of its own (in the sense of setsid), because PySpark's daemons leave the process
group of their driver. Whatever a test does, its sessions are empty and its directories gone afterwards.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from spillway.manager.checkpoint import IDENTITY
from spillway.manager.journal.entry import EpochEntry
from spillway.manager.journal.file import FILE_NAME, read_journal
from spillway.state.memory.tier_directory import choose_directory
from spillway.state.storage.document import read_document
from spillway.state.storage.storage import Storage

FILES, ROWS = 14, 500
SQL = "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, c.p AS p FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
DOOMED = Path(__file__).parent / "doomed_driver.py"
JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
TIMEOUT_SECONDS = 150.0


@pytest.fixture(scope="session")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three streams of `FILES` Parquet files, an epoch each; about two rows per key and stream."""
    root = tmp_path_factory.mktemp("streams")
    random = np.random.default_rng(20)
    for name in "abc":
        keys = random.integers(0, FILES * ROWS // 2, FILES * ROWS)
        write_stream(root / name, keys, FILES)
    return root


def write_stream(
    directory: Path, keys: "np.typing.NDArray[np.int64]", files: int, width_bytes: int = 0
) -> None:
    directory.mkdir(parents=True)
    ids = np.arange(len(keys))
    payload = [f"payload {number:020d}".ljust(width_bytes, "-") for number in ids]
    table = pa.table({"k": keys, "id": ids, "p": payload})
    rows = -(-len(keys) // files)
    for number in range(files):
        pq.write_table(table.slice(number * rows, rows), directory / f"{number:04d}.parquet")


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """A job file with its checkpoint and its sink."""

    root: Path
    streams: Path
    sink: str
    sql: str = SQL
    tree: str = ""
    """The tree of joins, if statistics shall not choose it."""

    @property
    def file(self) -> Path:
        return self.root / "job.toml"

    @property
    def checkpoint(self) -> Path:
        return self.root / "state"

    def write(self, run: dict[str, Any], master: str) -> None:
        text = [f'[view]\nsql = "{self.sql}"']
        if self.tree:
            text.append(f"tree = {self.tree}")
        for name in "abc":
            text.append(f'[sources.{name}]\nformat = "parquet"\npath = "{self.streams / name}"')
            text.append('schema = "k long, id long, p string"\noptions = { maxFilesPerTrigger = "1" }')
        text.append('[run]\ncheckpoint = "state"\ngroups = 64')
        text += [f"{key} = {json.dumps(value)}" for key, value in run.items()]
        text.append(f'[sink]\nformat = "{self.sink}"')
        if self.sink != "count":
            text.append('path = "out"')
        text.append(f'[spark]\n"spark.master" = "{master}"')
        # Lives are short: most of a start are compilers, the JVM's second and Spark's own, which would pay
        # off minutes later. Without Spark's, six epochs took 27 s of processor time instead of 32.
        text += [f'"spark.{role}.extraJavaOptions" = "{JVM_OPTIONS}"' for role in ("driver", "executor")]
        text.append('"spark.sql.codegen.wholeStage" = "false"')
        text.append('"spark.sql.codegen.factoryMode" = "NO_CODEGEN"')
        self.file.write_text("\n".join(text) + "\n")

    def epochs(self) -> list[EpochEntry]:
        path = self.checkpoint / FILE_NAME
        return list(read_journal(path)) if path.exists() else []

    def committed(self) -> int:
        """Epochs in the manifest, which counts before the journal does."""
        names = (self.checkpoint / "manifest").glob("*.json")
        return max((int(path.name.split(".")[0]) + 1 for path in names), default=0)

    def expected_results(self) -> int:
        with self._database() as database:
            return int(database.sql("SELECT count(*) FROM expected").fetchall()[0][0])

    def difference(self) -> tuple[int, int]:
        """How many results are missing from the sink, and how many are too many, as DuckDB counts them."""
        out = self.root / "out"
        files = (
            DeltaTable(out).file_uris() if self.sink == "delta" else [str(p) for p in out.glob("*.parquet")]
        )
        missing = "SELECT count(*) FROM (FROM expected EXCEPT ALL FROM found)"
        extra = "SELECT count(*) FROM (FROM found EXCEPT ALL FROM expected)"
        with self._database() as database:
            database.execute("CREATE TABLE found AS SELECT * FROM read_parquet(?)", [files])
            return database.sql(missing).fetchall()[0][0], database.sql(extra).fetchall()[0][0]

    def _database(self) -> duckdb.DuckDBPyConnection:
        """The streams as views, and the right answer as a table."""
        database = duckdb.connect()
        for path in self.streams.iterdir():
            database.execute(f"CREATE VIEW {path.name} AS SELECT * FROM '{path}/*.parquet'")
        database.execute(f"CREATE TABLE expected AS {self.sql}")
        return database

    def remove_tier(self) -> None:
        if (self.checkpoint / IDENTITY).exists():
            query_id = read_document(Storage(str(self.checkpoint)), IDENTITY)["query_id"]
            shutil.rmtree(choose_directory(None, query_id, None).path, ignore_errors=True)


@dataclass(slots=True)
class Driver:
    """One life of a driver: `python -m spillway run`, or the script that kills itself at a given place."""

    job: JobDirectory
    process: subprocess.Popen[str]
    started_epochs: int
    log: Path

    def wait_epochs(self, count: int) -> None:
        """Until the journal has `count` epochs; the driver must not end before."""
        self.wait_until(lambda epochs: len(epochs) >= count)

    def wait_until(self, holds: Callable[[list[EpochEntry]], bool]) -> None:
        """Until the journal's epochs are as wanted; the driver must not end before."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not holds(self.job.epochs()):
            assert self.process.poll() is None, f"the driver ended early: {self.tail()}"
            assert time.monotonic() < deadline, f"too few epochs in time: {self.tail()}"
            time.sleep(0.02)

    def wait_doomed(self) -> int:
        """Until it has killed itself; the epoch in which it did."""
        self.wait_killed()
        return int(self.tail().rsplit("doomed in epoch ", 1)[1].split()[0])

    def wait(self) -> dict[str, Any]:
        """Its JSON line when it has ended by itself; the exit code is added to it."""
        output, _ = self.process.communicate(timeout=TIMEOUT_SECONDS)
        assert output.strip(), f"no JSON line: {self.tail()}"
        return {"exit": self.process.returncode} | json.loads(output.splitlines()[-1])

    def wait_killed(self) -> None:
        self.process.communicate(timeout=TIMEOUT_SECONDS)
        assert self.process.returncode == -signal.SIGKILL, self.tail()
        self.await_empty_session()

    def kill_group(self) -> None:
        """kill -9 of driver, JVM and executors; the Python workers, in groups of their own, must follow."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.wait_killed()

    def await_empty_session(self, timeout_seconds: float = 20.0) -> None:
        deadline = time.monotonic() + timeout_seconds
        while left := self.members():
            assert time.monotonic() < deadline, f"processes outlived their driver: {left}"
            time.sleep(0.05)

    def members(self) -> dict[int, str]:
        """The living processes of the driver's session, with their command lines."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    state, _, _, session = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:4]
                    command = (entry / "cmdline").read_text().replace("\0", " ")
                except OSError:
                    continue
                if int(session) == self.process.pid and state not in "ZX":
                    found[int(entry.name)] = command
        return found

    def workers(self) -> list[int]:
        """Python workers that can hold a task: children of a PySpark daemon."""
        daemons = {pid for pid, command in self.members().items() if "pyspark.daemon" in command}
        return [pid for pid in daemons if _parent(pid) in daemons]

    def kill_worker(self, chance: random.Random) -> int:
        """kill -9 of one of them."""
        worker = chance.choice(self.workers())
        os.kill(worker, signal.SIGKILL)
        return worker

    def tail(self) -> str:
        return self.log.read_text()[-3_000:]

    def close(self) -> None:
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.communicate(timeout=20)
        self.await_empty_session()


@dataclass(slots=True)
class Drivers:
    """Starts drivers of one job, one life after the other."""

    job: JobDirectory
    lives: list[Driver] = field(default_factory=list)

    def start(self, *doom: str, command: str = "run") -> Driver:
        """The command line; with `doom`, a place and an epoch, one that kills its group there."""
        words = (
            [str(DOOMED), *doom, str(self.job.file)]
            if doom
            else ["-m", "spillway", command, str(self.job.file)]
        )
        log = self.job.root / f"life-{len(self.lives)}.log"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, *words, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                cwd=self.job.root,
            )
        life = Driver(self.job, process, len(self.job.epochs()), log)
        self.lives.append(life)
        return life

    def close(self) -> None:
        for life in self.lives:
            life.close()
        self.job.remove_tier()


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Callable[..., Drivers]]:
    """Makes a job over a directory of streams and the drivers of it."""
    made: list[Drivers] = []

    def make(
        streams: Path, sink: str, master: str = "local[2,4]", sql: str = SQL, tree: str = "", **run: Any
    ) -> Drivers:
        job = JobDirectory(tmp_path, streams, sink, sql, tree)
        job.write({"processors": 2} | run, master)
        made.append(Drivers(job))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def make_stream() -> Callable[..., None]:
    return write_stream


@pytest.fixture
def wide_streams(tmp_path: Path) -> Path:
    """One row per key and stream on average; a view that keeps the payload of `c` has twice 4 MB."""
    chance, rows = np.random.default_rng(8), 6_000
    for name in "abc":
        write_stream(tmp_path / "wide" / name, chance.integers(0, rows, rows), files=3, width_bytes=1_400)
    return tmp_path / "wide"


@pytest.fixture
def job_directory() -> type[JobDirectory]:
    return JobDirectory
