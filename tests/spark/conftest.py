"""A laboratory for views on Spark: streams as Parquet files, one per epoch, and results as multisets."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kit.commands import Call
from spillway.state.memory.tier_directory import TMPFS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spillway.spark.session.session import Session
    from spillway.spark.stream.query import Query

WAIT_SECONDS = 120.0
SPARK_ONLY = {"maxCachedFiles": "10000"}
"""Spark's default, but it keeps the file loop from reading the source."""


@pytest.fixture(autouse=True, scope="module")
def settings_stay(spark: "SparkSession") -> Iterator[None]:
    """The session is shared: commands that a module runs in this process set its settings."""
    before = dict(spark.conf.getAll)
    yield
    for name, value in dict(spark.conf.getAll).items():
        if value != before.get(name) and spark.conf.isModifiable(name):
            spark.conf.set(name, before[name]) if name in before else spark.conf.unset(name)


@dataclass(slots=True)
class Lab:
    """Streams, a checkpoint and an output in one directory."""

    spark: "SparkSession"
    directory: Path
    tables: dict[str, list[pa.Table]] = field(default_factory=dict)
    queries: list["Query"] = field(default_factory=list)

    @property
    def checkpoint(self) -> Path:
        return self.directory / "state"

    @property
    def out(self) -> Path:
        return self.directory / "out"

    @property
    def tier(self) -> Path:
        return self.directory / "tier"

    def session(self) -> "Session":
        from spillway.spark.session.session import Session

        return Session(self.spark)

    def stream(self, name: str, *epochs: pa.Table) -> None:
        """Append files to a stream: one per epoch, each a second younger than the one before."""
        directory = self.directory / "data" / name
        directory.mkdir(parents=True, exist_ok=True)
        known = self.tables.setdefault(name, [])
        for table in epochs:
            path = directory / f"{len(known):04d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + len(known), 1_700_000_000 + len(known)))
            known.append(table)

    def source(self, name: str, **options: str) -> "DataFrame":
        path = str(self.directory / "data" / name)
        schema = self.spark.read.parquet(path).schema
        options = {"maxFilesPerTrigger": "1", **options}
        return self.spark.readStream.schema(schema).options(**options).parquet(path)

    def streams(self) -> dict[str, "DataFrame"]:
        """Sources with an option that only Spark's own streaming knows, so that it reads them."""
        return {name: self.source(name, **SPARK_ONLY) for name in self.tables}

    def start(self, view: Any, **options: Any) -> "Query":
        settings = {"checkpoint": str(self.checkpoint), "tier": str(self.tier)} | options
        if settings.get("sink", "delta") in ("delta", "parquet") and "function" not in settings:
            settings.setdefault("path", str(self.out))
        sources = settings.pop("sources", None) or {name: self.source(name) for name in self.tables}
        query = self.session().run(view, sources, **settings)
        self.queries.append(query)
        return query

    def run(self, view: Any, **options: Any) -> dict[str, Any]:
        """Run to the end of the input; the summary."""
        query = self.start(view, **options)
        assert query.awaitTermination(WAIT_SECONDS), "the query did not end"
        return query.summary()

    def run_epochs(self, view: Any, epochs: int, **options: Any) -> dict[str, Any]:
        """Run, and stop as soon as this run has committed so many epochs."""
        query = self.start(view, **options)
        deadline = time.monotonic() + WAIT_SECONDS
        while query.isActive and len(query.recentProgress) < epochs:
            assert time.monotonic() < deadline, "the query committed no epoch"
            time.sleep(0.005)
        query.stop()
        assert query.exception() is None
        return query.summary()

    def results(self, sink: str = "delta") -> Counter[Any]:
        table = DeltaTable(str(self.out)).to_pyarrow_table() if sink == "delta" else pq.read_table(self.out)
        return multiset(table)

    def duckdb(self, sql: str) -> Counter[Any]:
        """The view's rows by DuckDB, over all files of all streams."""
        with duckdb.connect() as database:
            for name, tables in self.tables.items():
                database.register(name, pa.concat_tables(tables))
            return multiset(database.sql(sql).to_arrow_table())

    def leftovers(self) -> list[str]:
        """What queries should have removed: memory tiers, staged results, half-written files.

        Tasks may outlive the epoch that failed; what they still write, the next start removes.
        """
        found = list(self.tier.glob("spillway-*/*"))
        failed = bool(self.queries) and self.queries[-1].exception() is not None
        for root in () if failed else (self.out, self.checkpoint):
            found += root.rglob(".tmp-*")
            found += [path for path in root.rglob("staging/*") if path.is_file()]
        return [str(path) for path in found]


def memory_tiers_of_this_process() -> list[Path]:
    """Directories in tmpfs that queries of this process hold; other processes have theirs."""
    owners = TMPFS.glob("spillway-*/*/driver")
    return [owner.parent for owner in owners if owner.read_text() == str(os.getpid())]


def multiset(table: pa.Table) -> Counter[Any]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    """A value that can be counted: NaN equals itself, nested values are tuples."""
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, dict):
        return tuple((key, _plain(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(_plain(one) for one in value)
    return value


@pytest.fixture
def lab(spark: "SparkSession", tmp_path: Path) -> Iterator[Lab]:
    made = Lab(spark, tmp_path)
    yield made
    assert made.leftovers() == []
    assert memory_tiers_of_this_process() == []


@pytest.fixture
def counted() -> Callable[[pa.Table], Counter[Any]]:
    return multiset


@pytest.fixture
def tree() -> Callable[[Path], Mapping[str, bytes]]:
    """All files below a directory with their bytes, to show that nothing changed."""

    def read(root: Path, *, without: Sequence[str] = ()) -> dict[str, bytes]:
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in files
            if path.relative_to(root).parts[0] not in without
        }

    return read


@pytest.fixture
def command(spark: "SparkSession", call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command line in this process, on the shared session, which it would otherwise end."""
    monkeypatch.setattr("spillway.spark.session.session.stop_session", lambda _: None)
    return call
