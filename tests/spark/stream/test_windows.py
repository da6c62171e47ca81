"""Windows on Spark: event times by withWatermark or by job file, late rows, and the budget."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from spillway.errors import SourceError
from spillway.job.sources import SourceSpec

if TYPE_CHECKING:
    from spillway.spark.stream.query import Query

START = datetime(2026, 3, 29, tzinfo=UTC)
VIEW = """SELECT p.id AS p, v.id AS v, p.ts AS at
    FROM prices p [RANGE 20 SECONDS] JOIN volumes v [RANGE 5 SECONDS] USING (k)"""
DEFINITION = """SELECT p.id AS p, v.id AS v, p.ts AS at FROM prices p JOIN volumes v USING (k)
    WHERE greatest(p.ts, v.ts) - p.ts <= INTERVAL 20 SECONDS
    AND greatest(p.ts, v.ts) - v.ts <= INTERVAL 5 SECONDS"""
LATENESS = timedelta(seconds=4)


def rows(chance: Random, epoch: int, size: int) -> list[tuple[int, int, datetime | None]]:
    found: list[tuple[int, int, datetime | None]] = []
    for _ in range(size):
        seconds = epoch * 10 + chance.uniform(-16, 10)
        at = START + timedelta(microseconds=int(seconds * 1e6))
        found.append((chance.randrange(6), chance.randrange(1 << 30), at if chance.random() > 0.03 else None))
    return found


def table(of: list[tuple[int, int, datetime | None]]) -> pa.Table:
    keys, ids, times = zip(*of, strict=True)
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def fill(lab: Any) -> dict[str, list[pa.Table]]:
    """Two streams of six epochs, and what of them is not late."""
    chance = Random(7)
    latest: dict[str, datetime] = {}
    watermark: datetime | None = None
    in_time: dict[str, list[pa.Table]] = {"prices": [], "volumes": []}
    for epoch in range(6):
        for name in in_time:
            made = rows(chance, epoch, 60)
            lab.stream(name, table(made))
            kept = [one for one in made if one[2] is not None and (watermark is None or one[2] >= watermark)]
            in_time[name].append(table(kept))
            latest[name] = max([one[2] for one in made if one[2] is not None] + [latest.get(name, START)])
        reached = min(latest.values()) - LATENESS
        watermark = reached if watermark is None else max(watermark, reached)
    return in_time


@pytest.mark.parametrize("by_job", [False, True])
def test_late_rows_do_not_count_and_all_others_do(lab: Any, by_job: bool) -> None:
    in_time = fill(lab)
    names = ("prices", "volumes")
    if by_job:
        sources: dict[str, Any] = {
            name: SourceSpec(
                name, "parquet", str(lab.directory / "data" / name), "k long, id long, ts timestamp",
                {"maxFilesPerTrigger": "1"}, event_time="ts", lateness="4 seconds",
            )
            for name in names
        }  # fmt: skip
    else:
        sources = {name: lab.source(name).withWatermark("ts", "4 seconds") for name in names}
    summary = lab.run(VIEW, sources=sources, processors=2, groups=16, memory_bytes=4 << 20)
    lab.tables = in_time
    assert lab.results() == lab.duckdb(DEFINITION)
    assert summary["input_rows"] == 6 * 60 * 2
    in_time_rows = sum(len(t) for name in names for t in in_time[name])
    assert summary["late_rows"] + summary["null_time_rows"] == 6 * 60 * 2 - in_time_rows
    assert summary["null_time_rows"] > 0
    assert summary["late_rows"] > 20
    assert summary["expired_rows"] > 0


def test_bad_event_time(lab: Any) -> None:
    lab.stream("prices", table(rows(Random(1), 0, 3)))
    path = str(lab.directory / "data" / "prices")

    def start(**about: str) -> "Query":
        spec = SourceSpec("prices", "parquet", path, None, {}, **about)
        return lab.start(
            "SELECT p.id FROM prices p [RANGE 1 DAY] JOIN prices q ON p.k = q.k", sources={"prices": spec}
        )

    with pytest.raises(SourceError, match=r"\[sources.prices\].*when"):
        start(event_time="when")
    with pytest.raises(SourceError, match=r"\[sources.prices\].*soon"):
        start(event_time="ts", lateness="soon")
