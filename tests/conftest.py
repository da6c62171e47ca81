"""What all tests share: one Spark session for the whole run, result files, how long Hypothesis searches."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from pyarrow import parquet

from kit.commands import Call, caller
from kit.postgres import PostgresServers
from kit.reaper import own_mark, watch
from spillway.cli.output import Verbosity, set_verbosity
from spillway.manager import ResultFile, StagedEpoch
from spillway.state.memory.tier_directory import TMPFS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: a shared two-core machine stalls any example now and then. On CI the same examples every time.
# Tests that need fewer or more take a share of the profile's number, so that `deep` searches there too.
settings.register_profile(
    "local", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
settings.register_profile(
    "mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False
)
settings.register_profile("deep", settings.get_profile("local"), max_examples=2_000)
settings.register_profile("histories", settings.get_profile("local"), max_examples=40, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "local"))


def pytest_configure() -> None:
    """What this process starts ends with it, however it ends."""
    watch()


@pytest.fixture(autouse=True)
def normal_verbosity() -> None:
    """A command that a test called with --quiet leaves nothing quiet behind."""
    set_verbosity(Verbosity.NORMAL)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The session of all Spark tests, built as users build theirs; fast tests never import Spark."""
    from spillway.spark.jvm.build import build_session, stop_session
    from spillway.spark.jvm.defaults import default_settings
    from spillway.spark.jvm.master import parse_master

    options = "spark.driver.extraJavaOptions"
    session = build_session(
        {
            "spark.master": "local[2,4]",
            # Without the second compiler, which pays off after minutes of the same work, not of short tests.
            options: default_settings(parse_master("local"), {})[options] + " -XX:TieredStopAtLevel=1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
        app_name="spillway-tests",
    )
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def quick_directory() -> Iterator[Callable[[], Path]]:
    """Makes empty directories, in tmpfs where there is one: examples that sync files wait for no disk."""
    with tempfile.TemporaryDirectory(
        prefix=f"spillway-test-{own_mark()}-", dir=TMPFS if os.access(TMPFS, os.W_OK) else None
    ) as root:
        yield lambda: Path(tempfile.mkdtemp(dir=root))


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs the command line in this process; its exit code, output and error output."""
    return caller(monkeypatch, capsys)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServers]:
    """The PostgreSQL servers of this process."""
    servers = PostgresServers()
    yield servers
    servers.close()


@pytest.fixture
def s3_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Starts S3 servers (`kit/s3_server.py`), with or without conditional puts."""
    for when in ("REQUEST_CHECKSUM_CALCULATION", "RESPONSE_CHECKSUM_VALIDATION"):
        monkeypatch.setenv(f"AWS_{when}", "when_required")
    from kit.s3_server import S3Server

    started = []

    def start(*, conditional: bool = True) -> Any:
        started.append(S3Server(conditional=conditional))
        return started[-1]

    yield start
    for server in started:
        server.close()


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one query: they write files of rows and describe them as their commit rows do."""

    query_id: str
    schema: pa.Schema

    def stage(self, staging: str | None, sequence: int, files: Sequence[Sequence[int]]) -> StagedEpoch:
        """Write one file per list of ids."""
        written = []
        for task, ids in enumerate(files):
            table = pa.table({"id": list(ids), "name": [f"n{i}" for i in ids]}, schema=self.schema)
            path = Path(staging or "") / f"epoch-{sequence}-task-{task}-attempt-0.parquet"
            parquet.write_table(table, path)
            data = path.read_bytes()
            written.append(ResultFile(path.name, len(ids), len(data)))
        return StagedEpoch(sequence, self.query_id, tuple(written), sum(map(len, files)))


TASKS = Tasks("query-1", pa.schema([("id", pa.int64()), ("name", pa.string())]))


@pytest.fixture(scope="session")
def tasks() -> Tasks:
    return TASKS
