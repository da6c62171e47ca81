"""Trees of joins on Spark: the answer of DuckDB, whatever leaves memory, with every strategy."""

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway import Session
from spillway.job.sources import SourceSpec
from spillway.manager.journal.file import FILE_NAME, read_journal
from spillway.model.view import View
from spillway.plan.operators.tree import shape_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "x long, y long, s string, id long, at timestamp, p string"
STREAMS = ("a", "b", "c", "d", "e")
FILES = 4
MEMORY_BYTES = 4 << 20
CHAIN = (
    "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d, e.id AS e, a.p AS ap, d.p AS dp, e.p AS ep "
    "FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x JOIN d ON c.y = d.x JOIN e ON d.y = e.x"
)
VIEWS = {
    "chain": CHAIN,
    "bushy": "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d FROM a, b, c, d "
    "WHERE a.x = b.x AND c.x = d.x AND b.y = d.y",
    "cyclic": "SELECT a.id AS a, b.id AS b, c.id AS c, a.p AS p FROM a, b, c "
    "WHERE a.x = b.x AND b.y = c.x AND c.y = a.y",
    "text and pairs": "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d FROM a, b, c, d "
    "WHERE a.s = b.s AND b.x = c.x AND b.y = c.y AND c.s = d.s AND a.x < d.x",
    "self": "SELECT l.id AS l, r.id AS r, b.id AS b FROM a l, a r, b WHERE l.x = r.y AND r.x = b.x",
    "windows": "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d FROM a [RANGE 40 SECONDS], "
    "b [RANGE 30 SECONDS], c [RANGE 50 SECONDS], d WHERE a.x = b.x AND b.y = c.x AND c.y = d.x",
}
WINDOWS = {"a": 40, "b": 30, "c": 50}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree-data")
    rng = np.random.default_rng(7)
    for stream in STREAMS:
        (root / stream).mkdir()
        for number in range(FILES):
            rows = 400
            key = rng.integers(0, 700, (2, rows))
            key[:, :2] = 3  # a hot key
            nulls = rng.random(rows) < 0.03
            table = pa.table(
                {
                    "x": pa.array(key[0], mask=nulls),
                    "y": pa.array(key[1]),
                    "s": pa.array([f"k{value}" for value in key[0] % 97]),
                    "id": pa.array(np.arange(number * rows, (number + 1) * rows)),
                    "at": pa.array(
                        (number * 60 + rng.integers(0, 60, rows)) * 1_000_000, pa.timestamp("us", "UTC")
                    ),
                    "p": pa.array([f"{value:0600d}" for value in rng.integers(0, 1 << 40, rows)]),
                }
            )
            pq.write_table(table, root / stream / f"{number}.parquet")
    return root


def sources(data: Path, *, timed: bool = False) -> dict[str, SourceSpec]:
    options = {"maxFilesPerTrigger": "1"}
    late: dict[str, Any] = {"event_time": "at", "lateness": "60 seconds"} if timed else {}
    return {name: SourceSpec(name, "parquet", str(data / name), SCHEMA, options, **late) for name in STREAMS}


def expected(data: Path, sql: str, *, timed: bool = False) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as database:
        for name in STREAMS:
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{data}/{name}/*.parquet')")
        if timed:
            for name, seconds in WINDOWS.items():
                sql = sql.replace(f"{name} [RANGE {seconds} SECONDS]", name)
            youngest = "greatest(a.at, b.at, c.at, d.at)"
            for name, seconds in WINDOWS.items():
                sql += f" AND {youngest} - {name}.at <= INTERVAL {seconds} SECONDS"
        return Counter(database.sql(sql).fetchall())


def found(out: Path) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as database:
        return Counter(database.sql(f"SELECT * FROM read_parquet('{out}/*.parquet')").fetchall())


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_a_tree_gives_the_answer_of_duckdb(
    spark: "SparkSession", data: Path, tmp_path: Path, name: str
) -> None:
    timed = name == "windows"
    query = Session(spark).run(
        VIEWS[name],
        sources(data, timed=timed),
        checkpoint=str(tmp_path / "state"),
        sink="parquet",
        path=str(tmp_path / "out"),
        processors=3 if name == "bushy" else 2,  # more than there are cores: a stage for each level
        groups=16,
    )
    query.awaitTermination()
    wanted = expected(data, VIEWS[name], timed=timed)
    assert sum(wanted.values()) > 100
    assert found(tmp_path / "out") == wanted
    assert query.summary()["results_cleanup"] == 0


@pytest.mark.parametrize(("kind", "name"), [("replicate", "text and pairs"), ("multi-partition", "chain")])
def test_rows_may_be_spread_alike_through_all_joins(
    spark: "SparkSession", data: Path, tmp_path: Path, kind: str, name: str
) -> None:
    query = Session(spark).run(
        View.sql(VIEWS[name]).with_join(kind),
        sources(data),
        checkpoint=str(tmp_path / "state"),
        sink="parquet",
        path=str(tmp_path / "out"),
        processors=2,
        groups=6,
        memory_bytes=MEMORY_BYTES,
    )
    query.awaitTermination()
    assert found(tmp_path / "out") == expected(data, VIEWS[name])
    summary = query.summary()
    assert summary["spills"] > 0 or name != "chain"  # the other has rows without payload
    with duckdb.connect() as database:
        rows = {
            one: database.sql(
                f"SELECT count(x), count(*) FROM read_parquet('{data}/{one}/*.parquet')"
            ).fetchall()
            for one in STREAMS
        }
    keyed, whole = (
        ("abcde", "") if name == "chain" else ("bc", "ad")
    )  # those whose key may be null, and others
    arrived = sum(rows[one][0][0] for one in keyed) + sum(rows[one][0][1] for one in whole)
    assert summary["input_rows"] == arrived  # a copy does not count


@pytest.mark.parametrize(
    ("policy", "processors", "adapt"),
    [
        ("global-output-penalty", 2, "lazy-disk"),
        ("global-output", 1, "none"),
        ("local-output", 2, "none"),
        ("bottom-up", 1, "none"),
        ("global-output-cleanup", 1, "none"),
    ],
)
def test_what_leaves_memory_comes_in_clean_up(
    spark: "SparkSession", data: Path, tmp_path: Path, policy: str, processors: int, adapt: str
) -> None:
    query = Session(spark).run(
        View.sql(CHAIN),
        sources(data),
        checkpoint=str(tmp_path / "state"),
        sink="parquet",
        path=str(tmp_path / "out"),
        processors=processors,
        groups=16,
        memory_bytes=MEMORY_BYTES,
        spill=policy,
        spill_share=0.5,
        adapt=adapt,
        distribution=(2.0, 1.0) if processors == 2 else "even",
    )
    query.awaitTermination()
    summary = query.summary()
    epochs = list(read_journal(tmp_path / "state" / FILE_NAME))
    assert {spill.reason for entry in epochs for spill in entry.spills} == {policy}
    assert summary["results_cleanup"] > 0
    reports = [one for entry in epochs for one in entry.processors]
    assert max(one.resident_bytes for one in reports) <= MEMORY_BYTES
    assert found(tmp_path / "out") == expected(data, CHAIN)


def test_a_restart_keeps_the_tree_though_statistics_have_changed(
    spark: "SparkSession", data: Path, tmp_path: Path
) -> None:
    """At first `a` is the largest input, at last `c` is."""
    sql = "SELECT a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE a.x = b.x AND b.y = c.x"
    streams = sources(tmp_path)

    def add(name: str, files: range) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        for number in files:
            shutil.copy(data / name / f"{number}.parquet", tmp_path / name)

    def tree(checkpoint: str | None) -> str:
        plan, _ = Session(spark).plan(View.sql(sql), streams, 8, checkpoint)
        return shape_text(plan.shape())  # type: ignore[union-attr]

    for name, files in {"a": 3, "b": 1, "c": 1, "d": 1, "e": 1}.items():
        add(name, range(files))
    state, out = str(tmp_path / "state"), tmp_path / "out"
    before = tree(None)
    for run in range(2):
        query = Session(spark).run(sql, streams, checkpoint=state, sink="parquet", path=str(out), groups=8)
        query.awaitTermination()
        assert found(out) == expected(tmp_path, sql)
        assert tree(state) == before
        if run == 0:
            add("c", range(1, FILES))
            add("b", range(1, FILES))
    assert tree(None) != before
