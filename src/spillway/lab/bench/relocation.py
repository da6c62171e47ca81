"""The benchmark `relocation`: the cost and the benefit of moving groups, on one Spark session.

Moving: the same files with and without a move of some groups every few epochs, in turn. Balance: processors
sleep to be as slow as an experiment says, so five of them fit two cores.
"""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from spillway.job import SourceSpec
from spillway.lab.bench.relocation_metrics import balance_metrics, moving_metrics, resize_metrics
from spillway.lab.engines import STREAMS, VIEW
from spillway.manager.journal import FILE_NAME, EpochEntry, read_journal
from spillway.model import members, placed_on
from spillway.policy.placement import PROCESSOR
from spillway.spark.session import Session
from spillway.spark.stream import Query
from spillway.workload import UniformJoin, write_streams

GROUPS = 64
MOVE_EPOCHS = 15
"""Epochs between two relocations."""
MOVED_SHARE = 0.4
"""The share of a processor's groups that moves."""
WIDTH_BYTES = 400
PAIRS = 2
RESIZE_FILES = 3
"""Files per epoch."""
SLOW_FACTOR, SLOW_PROCESSORS, SLOW_GROUPS = 2.5, 5, 60
SETTINGS = {"spark.master": f"local[{SLOW_PROCESSORS},4]"}
"""All processors run at once: a sleeping one needs a task slot, but no core."""
ROW_SECONDS = 1e-4
"""Emulated service time: a processor is busy for 0.9 s with 9,000 rows, longer than the rest of an epoch."""
BALANCE_EPOCHS, BALANCE_ROWS = 40, 3_000
"""Epochs, and rows per stream and epoch for each processor."""
UNLOADED, SLOWED, BALANCED = "unloaded", "slowed", "slowed, flux-load"


def bench_relocation(
    session: Session, *, rows: int, epochs: int, balance: bool, note: Callable[[str], None]
) -> dict[str, Any]:
    """`rows` per stream and `epochs` are for the cost of moving; `balance` adds the second part."""
    rows -= rows % epochs  # files of equal length
    metrics: dict[str, Any] = {"bench": "relocation", "rows": rows, "epochs": epochs}
    with tempfile.TemporaryDirectory(prefix="spillway-bench-relocation-") as scratch:
        root = Path(scratch)
        metrics |= _moving(session, root, rows, epochs, note)
        metrics |= _resizing(session, root, epochs, note)
        if balance:
            metrics |= _balance(session, root, note)
    return metrics


def _moving(
    session: Session, root: Path, rows: int, epochs: int, note: Callable[[str], None]
) -> dict[str, Any]:
    note(f"writing {rows:,} rows per stream in {epochs} files")
    write_streams(root / "data", UniformJoin(rows, STREAMS, WIDTH_BYTES, 1), rows=rows, files=epochs)
    write_streams(root / "warm", UniformJoin(9_000, STREAMS, WIDTH_BYTES, 2), rows=9_000, files=6)
    _run(session, root / "warm", root / "warm-up", processors=2, groups=GROUPS)
    still: list[Sequence[EpochEntry]] = []
    moving: list[Sequence[EpochEntry]] = []
    for pair in range(PAIRS):
        variants = [(still, None), (moving, _Mover())]
        for runs, mover in variants[:: 1 if pair % 2 == 0 else -1]:  # the first run is slower
            out = root / f"{pair}-{'still' if mover is None else 'moving'}"
            entries = _run(session, root / "data", out, mover, processors=2, groups=GROUPS)
            note(f"{out.name}: {sum(entry.seconds.total for entry in entries):.1f} s")
            runs.append(entries)
    return moving_metrics(still, moving)


def _resizing(session: Session, root: Path, epochs: int, note: Callable[[str], None]) -> dict[str, Any]:
    """From two processors to four, and to three, in fewer and longer epochs."""
    count = epochs // RESIZE_FILES
    asked = (count // 5, count // 2)
    resizer = _Resizer(dict(zip(asked, (4, 3), strict=True)))
    options = {"processors": 2, "groups": GROUPS, "files": RESIZE_FILES}
    entries = _run(session, root / "data", root / "resize", resizer, **options)
    note(f"resize: {sum(entry.seconds.total for entry in entries):.1f} s")
    return resize_metrics(entries, asked)


def _balance(session: Session, root: Path, note: Callable[[str], None]) -> dict[str, Any]:
    rows = BALANCE_ROWS * SLOW_PROCESSORS * BALANCE_EPOCHS
    write_streams(root / "slow", UniformJoin(rows, STREAMS, 0, 3), rows=rows, files=BALANCE_EPOCHS)
    slow = (1 / SLOW_FACTOR,) + (1.0,) * (SLOW_PROCESSORS - 1)
    emulated: dict[str, Any] = {
        "processors": SLOW_PROCESSORS,
        "groups": SLOW_GROUPS,
        "row_seconds": ROW_SECONDS,
        "load_signal": PROCESSOR,  # there are more processors than cores, so a step's own time says little
    }
    flux: dict[str, Any] = {"adapt": "flux-load", "policy": {"imbalance_threshold": 1.1}}
    variants: dict[str, dict[str, Any]] = {
        UNLOADED: {},
        SLOWED: {"speeds": slow},
        BALANCED: {"speeds": slow, **flux},
    }
    runs: dict[str, Sequence[EpochEntry]] = {}
    for number, (name, options) in enumerate(variants.items()):
        runs[name] = _run(session, root / "slow", root / f"balance-{number}", **emulated, **options)
        note(f"{name}: {sum(entry.seconds.total for entry in runs[name]):.1f} s")
    return balance_metrics(runs, UNLOADED)


class _Hand(ABC):
    """Changes a query after some of its epochs."""

    def __init__(self) -> None:
        self.query: Query | None = None

    def __call__(self, entry: dict[str, Any]) -> None:
        if self.query is not None:
            self.after(self.query, int(entry["sequence"]))

    @abstractmethod
    def after(self, query: Query, epoch: int) -> None: ...


class _Mover(_Hand):
    """Sends groups of one processor to the other, and back, every `MOVE_EPOCHS` epochs."""

    def after(self, query: Query, epoch: int) -> None:
        if (epoch + 1) % MOVE_EPOCHS == 0:
            sender = (epoch + 1) // MOVE_EPOCHS % 2
            mine = list(members(placed_on(query.placement, sender)))
            query.move(mine[: int(len(mine) * MOVED_SHARE)], 1 - sender)


class _Resizer(_Hand):
    """Asks for a number of processors after given epochs."""

    def __init__(self, wanted: Mapping[int, int]) -> None:
        super().__init__()
        self._wanted = wanted

    def after(self, query: Query, epoch: int) -> None:
        if epoch in self._wanted:  # from another thread, as users do: it prepares while epochs run
            Thread(target=query.resize, args=(self._wanted[epoch],), daemon=True).start()


def _run(
    session: Session, data: Path, out: Path, hand: _Hand | None = None, files: int = 1, **options: Any
) -> Sequence[EpochEntry]:
    """The journal of a run that only counts its results; `files` make an epoch."""
    source = {"maxFilesPerTrigger": str(files)}
    schema = "k long, id long, p string"
    query = session.run(
        VIEW,
        {name: SourceSpec(name, "parquet", str(data / name), schema, source) for name in STREAMS},
        checkpoint=str(out),
        sink="count",
        listener=hand,
        **options,
    )
    if hand is not None:
        hand.query = query
    query.awaitTermination()
    return list(read_journal(out / FILE_NAME))
