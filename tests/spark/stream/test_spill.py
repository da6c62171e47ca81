"""State several times its memory: results keep coming, the budget holds, nothing is missing at the end."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from spillway import Session
from spillway.job.sources import SourceSpec
from spillway.manager.journal.file import FILE_NAME, read_journal
from spillway.spark.stream.epoch import MAX_PARCEL_BYTES, parcel_bytes
from spillway.state.orders.orders import Limits
from spillway.workload.files import write_streams
from spillway.workload.uniform import UniformJoin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_BYTES = 4 << 20
TIMES_MEMORY = 5
STREAMS = ("a", "b", "c", "d", "e")
WIDTH_BYTES = 600
ROWS = {3: 12_000, 5: 14_000}
"""Per stream: with their payload more than five times the memory of all processors."""
ROTATION = "rotation"
CASES = [(3, 1, "least-productive"), (5, 2, "recent-history"), (3, 1, ROTATION)]
"""All policies, without Spark, are in `tests/unit/manager/test_spill_policies.py`."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Streams of one row per key on average, four files each, made once per number of streams."""
    made: dict[int, Path] = {}

    def make(inputs: int) -> Path:
        if inputs not in made:
            made[inputs] = tmp_path_factory.mktemp(f"spill-data-{inputs}")
            spec = UniformJoin(ROWS[inputs], STREAMS[:inputs], WIDTH_BYTES, 3)
            write_streams(made[inputs], spec, rows=ROWS[inputs], files=4)
        return made[inputs]

    return make


def view(names: Sequence[str], tables: Callable[[str], str] = str) -> str:
    """The join of the streams on `k` with all their columns, so that state keeps every payload."""
    columns = ", ".join(f"{name}.id AS {name}_id, {name}.p AS {name}_p" for name in names)
    first, *others = names
    joins = [f"JOIN {tables(name)} {name} ON {first}.k = {name}.k" for name in others]
    return " ".join([f"SELECT {columns} FROM {tables(first)} {first}", *joins])


@pytest.mark.parametrize(("inputs", "processors", "policy"), CASES)
def test_results_at_run_time_and_in_clean_up_add_up_to_the_answer(
    spark: "SparkSession",
    data: Callable[[int], Path],
    tmp_path: Path,
    inputs: int,
    processors: int,
    policy: str,
) -> None:
    streams, names = data(inputs), STREAMS[:inputs]
    options = {"maxFilesPerTrigger": "1"}
    schema = "k long, id long, p string"
    sources = {name: SourceSpec(name, "parquet", str(streams / name), schema, options) for name in names}
    query = Session(spark).run(
        view(names),
        sources,
        checkpoint=str(tmp_path / "state"),
        sink="parquet",
        path=str(tmp_path / "out"),
        processors=processors,
        groups=32,
        memory_bytes=MEMORY_BYTES,
        spill="least-productive" if policy == ROTATION else policy,
        spill_share=0.6,  # fewer spills, hence fewer epochs
        rotation=policy == ROTATION,
    )
    query.awaitTermination()
    summary = query.summary()
    epochs = list(read_journal(tmp_path / "state" / FILE_NAME))
    durable = sum(path.stat().st_size for path in (tmp_path / "state" / "runs").iterdir())
    assert durable >= TIMES_MEMORY * MEMORY_BYTES * processors
    if policy == ROTATION:
        assert any(swap.resumed for entry in epochs for swap in entry.swaps)
        assert summary["spills"] == 0
    else:
        assert {spill.reason for entry in epochs for spill in entry.spills} == {policy}
    assert summary["results_runtime"] > 0 or inputs == 5  # of five inputs a tenth in memory may match nothing
    assert (summary["results_cleanup"] > 0) == (policy != ROTATION)
    reports = [one for entry in epochs for one in entry.processors]
    assert max(one.resident_bytes for one in reports) <= MEMORY_BYTES
    assert max(one.peak_bytes for one in reports) <= MEMORY_BYTES
    wanted = view(names, lambda name: f"read_parquet('{streams}/{name}/*.parquet')")
    found = f"SELECT * FROM read_parquet('{tmp_path}/out/*.parquet')"
    with duckdb.connect() as database:
        for left, right in ((wanted, found), (found, wanted)):
            assert database.sql(f"{left} EXCEPT ALL {right}").fetchall() == []
        ((count,),) = database.sql(f"SELECT count(*) FROM ({wanted})").fetchall()
    assert summary["results_runtime"] + summary["results_cleanup"] == count


def test_arriving_batches_are_bounded_by_the_least_budget() -> None:
    assert parcel_bytes([Limits(), Limits()]) == MAX_PARCEL_BYTES
    assert parcel_bytes([Limits(), Limits(round_bytes=70_000), Limits(round_bytes=90_000)]) == 70_000
    assert parcel_bytes([Limits(round_bytes=1 << 40)]) == MAX_PARCEL_BYTES
