"""One live run of a query: start it, feed it, wait until every result is visible, stop it.

The engine's program gives a query that can be started and stopped; all else is the same for every engine.
Invariant: nothing is polled while files arrive. Known limit: a run that is not through within the drain limit
is stopped and gives no latencies, because those of the missing results are unknown.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq

from spillway.lab.engines.data import SHAPES, JoinShape
from spillway.lab.engines.live.schedule import Schedule
from spillway.lab.engines.live.visibility import Visible
from spillway.lab.engines.result import PeerResult

ARRIVALS_NAME, VISIBLE_NAME = "arrivals.json", "visible.json"
RESULTS_NAME = "results"
FEEDER = Path(__file__).with_name("feeder.py")
"""The writer, as a script that any Python runs."""
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class LiveJob:
    """What an engine's program is told about a run."""

    shape_name: str
    waiting: str
    schedule: Schedule
    expected_results: int
    drain_seconds: float

    @property
    def shape(self) -> JoinShape:
        return SHAPES[self.shape_name]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "LiveJob":
        values = json.loads(text)
        return cls(**{**values, "schedule": Schedule(**values["schedule"])})


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """A query that runs: how to stop it, when its files became visible, how long its batches took."""

    stop: Callable[[], None]
    visible: Callable[[], Visible]
    batch_seconds: Callable[[], tuple[float, ...]]
    is_active: Callable[[], bool]


def run_live(
    engine: str, job: LiveJob, out: Path, start: Callable[[JoinShape, Path, Path], LiveQuery]
) -> PeerResult:
    """Run `start(shape, live, out)` under the job's schedule; answers lie in `out`."""
    live, results = out / "live", out / RESULTS_NAME
    for stream in job.shape.streams:
        (live / stream).mkdir(parents=True)
    query = start(job.shape, live, out)
    began = time.perf_counter()
    subprocess.run(_feeder_argv(job, live, out / ARRIVALS_NAME), check=True)
    is_through = _drained(job, query)
    seconds = time.perf_counter() - began
    query.stop()
    visible = query.visible()
    (out / VISIBLE_NAME).write_text(json.dumps(visible))
    found = sum(pq.read_metadata(file).num_rows for file in visible)
    return PeerResult(
        engine,
        rows_in=job.schedule.rows_per_stream * job.schedule.streams,
        results=found,
        seconds=seconds,
        epoch_seconds=query.batch_seconds(),
        finished=is_through,
        note="" if is_through else f"{found} of {job.expected_results} results after {seconds:.0f} s",
        output=str(results) if is_through else "",
    )


def _drained(job: LiveJob, query: LiveQuery) -> bool:
    """Wait until all results are visible; False if they are not in time, or the query has ended."""
    until = time.monotonic() + job.drain_seconds
    counts: dict[str, int] = {}
    while True:
        counts |= {file: pq.read_metadata(file).num_rows for file in query.visible() if file not in counts}
        if sum(counts.values()) >= job.expected_results:
            return True
        if time.monotonic() > until or not query.is_active():
            return False
        time.sleep(POLL_SECONDS)


def _feeder_argv(job: LiveJob, live: Path, log: Path) -> list[str]:
    schedule = job.schedule
    return [
        sys.executable, "-I", str(FEEDER), job.waiting, str(live), str(log),
        "--streams", ",".join(job.shape.streams), "--drops", str(schedule.drops),
        "--interval-seconds", str(schedule.interval_seconds),
    ]  # fmt: skip


def live_parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that all programs of this package take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("job", type=LiveJob.from_json)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--warm-up-rows", type=int, required=True)
    return parser
