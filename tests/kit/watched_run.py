"""Runs a plan under a budget in a process of its own, and watches its memory from outside.

A program too: it prints what the operating system saw, at run time and in clean-up, against the budget.

    PYTHONPATH=tests python -m kit.watched_run --shape tree --payload text --width 20 --memory 4MB
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kit.bounded_plan import BoundedPlan
from kit.bounded_worker import BoundedWorker, ParcelCluster
from kit.memory_watch import MemorySample, MemoryWatch
from kit.wide_rows import PAYLOADS
from spillway.manager import StagedEpoch
from spillway.manager.cleanup import Cleaning
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.entry import EpochEntry, EpochKind
from spillway.manager.journal.file import Journal
from spillway.model import parse_bytes
from spillway.state.memory.tier_directory import TMPFS
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink

WARM_UP_SHARE = 4
INTERVAL_SECONDS = 0.002
ROW_BYTES = 40
"""Of a row besides its payload."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The epochs of a run with the time at which each ended, and the samples."""

    entries: list[tuple[float, EpochEntry]]
    samples: list[MemorySample]

    def peak(self, phase: EpochKind) -> MemorySample:
        """The sample with the most memory, of epochs of this kind."""
        found = [sample for sample in self.samples if self._phase(sample) is phase]
        return max(found, key=lambda sample: sample.bytes, default=MemorySample(0.0, 0, 0))

    def counted_bytes(self, phase: EpochKind) -> int:
        """The most that the engine counted itself."""
        return max((entry.processors[0].peak_bytes for entry in self._of(phase)), default=0)

    def results(self, phase: EpochKind) -> int:
        return sum(entry.results for entry in self._of(phase))

    @property
    def spills(self) -> int:
        return sum(len(entry.spills) for _, entry in self.entries)

    def _of(self, phase: EpochKind) -> list[EpochEntry]:
        return [entry for _, entry in self.entries if entry.kind is phase]

    def _phase(self, sample: MemorySample) -> EpochKind | None:
        return next((entry.kind for ended, entry in self.entries if sample.at <= ended), None)


def watched_run(
    plan: BoundedPlan, directory: Path, *, times_memory: float = 2.0, epochs: int = 4, matches: int = 1
) -> WatchedRun:
    """Run a plan over rows that take `times_memory` the budget; a key has `matches` rows in each input."""
    rows = int(times_memory * plan.memory_bytes / (plan.width + ROW_BYTES))
    for name, share, seed in (("warm-up", WARM_UP_SHARE, 1), ("run", 1, 2)):
        parcels = directory / name / "parcels"
        plan.write(parcels, rows=rows // share, epochs=epochs, matches=matches, seed=seed)
    tests = str(Path(__file__).parents[1])
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH", "")))),
    }
    with _images() as images, BoundedWorker(plan.graph, environment) as worker:
        _run(plan, worker, directory / "warm-up", images / "warm-up")
        shutil.rmtree(images / "warm-up")
        with MemoryWatch(lambda: [worker.pid], images, INTERVAL_SECONDS) as watch:
            entries = _run(plan, worker, directory / "run", images / "run")
    return WatchedRun(entries, watch.samples)


def _run(
    plan: BoundedPlan, worker: BoundedWorker, directory: Path, tier: Path
) -> list[tuple[float, EpochEntry]]:
    """Join the parcels of a directory, clean-up included; the epochs, and when each ended."""
    groups = worker.graph.operators[-1].groups
    config = EngineConfig(processors=1, groups=groups, tier=str(tier), budget=plan.budget)
    sink = ForgetfulSink(str(directory / "staging"))
    storage = Storage(str(directory / "state"))
    engine = Engine(config, worker.graph, "q", storage, sink, Journal(None))
    entries: list[tuple[float, EpochEntry]] = []

    def note(entry: EpochEntry) -> None:
        entries.append((time.time(), entry))

    def drain(*, ending: bool) -> None:
        while engine.has_cursor or engine.has_pending or (ending and engine.has_cleanup):
            if engine.has_cursor:
                note(engine.run_cleanup_epoch(ParcelCluster(worker), Cleaning.RESUMED))
            elif engine.has_pending:
                note(engine.run_epoch(ParcelCluster(worker), None, ending=ending))
            else:
                note(engine.run_cleanup_epoch(ParcelCluster(worker)))

    for number, parcels in enumerate(sorted((directory / "parcels").iterdir())):
        note(engine.run_epoch(ParcelCluster(worker, tuple(sorted(parcels.iterdir()))), number))
        drain(ending=False)
    drain(ending=True)
    return entries


class ForgetfulSink(ListSink):
    """Removes results as they come: only what it took to make them counts."""

    def commit(self, epoch: StagedEpoch) -> None:
        Storage(self.staging or "").delete(file.path for file in epoch.files)


@contextmanager
def _images() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="spillway-test-", dir=TMPFS))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=("join", "tree"), default="join")
    parser.add_argument("--payload", choices=tuple(PAYLOADS), default="text")
    parser.add_argument("--width", type=int, default=250)
    parser.add_argument("--memory", default="16MB")
    parser.add_argument("--times", type=float, default=2.0, help="how much larger than the budget rows are")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--matches", type=int, default=1)
    given = parser.parse_args()
    plan = BoundedPlan(given.shape, given.payload, given.width, parse_bytes(given.memory, "--memory"))
    with tempfile.TemporaryDirectory() as directory:
        run = watched_run(
            plan,
            Path(directory),
            times_memory=given.times,
            epochs=given.epochs,
            matches=given.matches,
        )
    for phase in EpochKind:
        peak = run.peak(phase)
        print(
            f"{plan.shape}, {plan.payload} of {plan.width}, {given.times:g} times {given.memory}, "
            f"{given.matches} matches, {phase.value}: seen {peak.bytes / 1e6:.1f} MB (anonymous "
            f"{peak.anonymous_bytes / 1e6:.1f}, images {peak.image_bytes / 1e6:.1f}), counted "
            f"{run.counted_bytes(phase) / 1e6:.1f}, over the budget by "
            f"{(peak.bytes - plan.memory_bytes) / 1e6:.1f} MB; {run.results(phase)} results"
        )


if __name__ == "__main__":
    main()
