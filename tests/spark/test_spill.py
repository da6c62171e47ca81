"""State several times its memory: results keep coming, the budget holds, nothing is missing at the end."""

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from spillway import Session, SourceSpec
from spillway.manager.journal import FILE_NAME, read_journal
from spillway.workload import UniformJoin, write_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_BYTES = 4 << 20
ROWS = 60_000
STREAMS = ("a", "b", "c")
VIEW = "SELECT a.id AS x, b.id AS y, c.id AS z, a.p AS p FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("spill-data")
    write_streams(directory, UniformJoin(ROWS // 2, STREAMS, 250, 3), rows=ROWS, files=4)
    return directory


@pytest.mark.parametrize("policy", ["least-productive", "random"])
def test_results_at_run_time_and_in_clean_up_add_up_to_the_answer(
    spark: "SparkSession", data: Path, tmp_path: Path, policy: str
) -> None:
    options = {"maxFilesPerTrigger": "1"}
    schema = "k long, id long, p string"
    sources = {name: SourceSpec(name, "parquet", str(data / name), schema, options) for name in STREAMS}
    query = Session(spark).run(
        VIEW,
        sources,
        checkpoint=str(tmp_path / "state"),
        sink="parquet",
        path=str(tmp_path / "out"),
        processors=1,
        groups=32,
        memory_bytes=MEMORY_BYTES,
        spill=policy,
    )
    query.awaitTermination()
    summary = query.summary()
    epochs = list(read_journal(tmp_path / "state" / FILE_NAME))
    spilled = sum(spill["bytes"] for entry in epochs for spill in entry["spills"])
    assert spilled > 3 * MEMORY_BYTES
    assert summary["results_runtime"] > 0
    assert summary["results_cleanup"] > 0
    assert max(one["resident_bytes"] for entry in epochs for one in entry["processors"]) <= MEMORY_BYTES
    tables = {name: f"read_parquet('{data}/{name}/*.parquet') AS {name}" for name in STREAMS}
    wanted = VIEW
    for name, table in tables.items():
        wanted = wanted.replace(f"FROM {name} ", f"FROM {table} ").replace(f"JOIN {name} ", f"JOIN {table} ")
    found = f"SELECT * FROM read_parquet('{tmp_path}/out/*.parquet')"
    for left, right in ((wanted, found), (found, wanted)):
        assert duckdb.sql(f"{left} EXCEPT ALL {right}").fetchall() == []
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM ({wanted})").fetchall()
    assert summary["results_runtime"] + summary["results_cleanup"] == count
