"""The epoch engine: makes orders from the manifest, has them executed, commits what came back.

Order of a commit: the tasks' files are there; the manifest record makes the epoch permanent; the sink gets
the result files; the journal is told. After a crash between any two of these, `recover` repeats the sink
commit from the manifest. A committed epoch is never computed again.

The engine knows no Spark. It is driven by whoever brings input: Spark's foreachBatch, or a test.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from spillway.errors import StateError
from spillway.manager.journal import Journal
from spillway.model.group_set import group_set
from spillway.state.compaction import CompactionLimits, choose_merges
from spillway.state.manifest import Counters, EpochRecord, Manifest
from spillway.state.manifest_log import ManifestLog
from spillway.state.operator import JoinOperator
from spillway.state.orders import Limits, Orders, Report
from spillway.state.storage import Storage

Files = tuple[tuple[str, int, int], ...]
Execute = Callable[[Sequence[Orders]], Sequence[Report]]
"""Runs one epoch: gives every processor its orders and its input, returns their reports."""


class ResultSink(Protocol):
    """The part of a sink that the engine needs."""

    @property
    def staging(self) -> str | None: ...

    def last_committed(self, query_id: str) -> int: ...

    def commit_files(self, sequence: int, files: Files) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineConfig:
    processors: int
    groups: int
    tier: str
    """Directory of the memory tier on each host, already specific to this query."""
    limits: Limits = field(default_factory=Limits)
    compaction: CompactionLimits = field(default_factory=CompactionLimits)
    run_compression: str | None = None
    result_compression: str = "snappy"


class Engine:
    def __init__(
        self,
        config: EngineConfig,
        operator: JoinOperator,
        query_id: str,
        storage: Storage,
        sink: ResultSink,
        journal: Journal,
    ) -> None:
        self.config = config
        self.operator = operator
        self._query_id = query_id
        self._storage = storage
        self._sink = sink
        self._journal = journal
        self._log = ManifestLog(storage)
        self._committed_placement: tuple[int, ...] | None = None
        self.manifest = self._recover()

    def _recover(self) -> Manifest:
        config = self.config
        placement = tuple(group * config.processors // config.groups for group in range(config.groups))
        manifest = self._log.load(placement)
        if manifest.sequence >= 0:
            self._committed_placement = manifest.placement
        if len(set(manifest.placement)) != config.processors:
            manifest = _replaced(manifest, placement)
        for record in self._log.records_after(self._sink.last_committed(self._query_id)):
            self._sink.commit_files(record.sequence, record.files)
        return manifest

    @property
    def token(self) -> int:
        return self._log.token

    def has_taken(self, batch_id: int) -> bool:
        """Whether this Spark batch is already committed."""
        return batch_id <= self.manifest.batch_id

    @property
    def has_pending(self) -> bool:
        return self.manifest.pending_rows > 0

    def run_epoch(self, execute: Execute, batch_id: int | None) -> dict[str, Any]:
        """One epoch: with a Spark batch as input, or only pending rows. Returns the journal entry."""
        started, wall = time.perf_counter(), time.time()
        orders = self._orders()
        ordered = time.perf_counter()
        reports = sorted(execute(orders), key=lambda report: report.processor)
        if [report.processor for report in reports] != list(range(self.config.processors)):
            came = [report.processor for report in reports]
            raise StateError(
                f"epoch {orders[0].sequence} got reports of processors {came}, "
                f"expected one of each of {self.config.processors}"
            )
        executed = time.perf_counter()
        before = self.manifest
        record = self._record(orders[0].sequence, batch_id, reports)
        self.manifest = self._log.commit(before, record)
        self._committed_placement = self.manifest.placement
        committed = time.perf_counter()
        self._sink.commit_files(record.sequence, record.files)
        sunk = time.perf_counter()
        entry = _entry(record, self.manifest, reports) | {
            "time": wall,
            "seconds": {
                "order": ordered - started,
                "execute": executed - ordered,
                "commit": committed - executed,
                "sink": sunk - committed,
                "total": sunk - started,
            },
        }
        self._journal.append(entry)
        return entry

    def _orders(self) -> list[Orders]:
        config, manifest = self.config, self.manifest
        runs = sorted(manifest.runs.values(), key=lambda run: run.first_epoch)
        orders = []
        for processor in range(config.processors):
            groups = group_set(g for g, owner in enumerate(manifest.placement) if owner == processor)
            mine = tuple(replace(run, live=run.live & groups) for run in runs if run.live & groups)
            orders.append(
                Orders(
                    sequence=manifest.sequence + 1,
                    processor=processor,
                    groups=groups,
                    runs=mine,
                    merges=choose_merges(mine, len(self.operator.inputs), config.compaction),
                    pending=manifest.pending.get(processor, ()),
                    limits=config.limits,
                    state=self._storage.root,
                    tier=f"{config.tier}/{self._log.token:06d}/{processor:04d}",
                    staging=self._sink.staging,
                    run_compression=config.run_compression,
                    result_compression=config.result_compression,
                )
            )
        return orders

    def _record(self, sequence: int, batch_id: int | None, reports: Sequence[Report]) -> EpochRecord:
        return EpochRecord(
            sequence=sequence,
            token=self._log.token,
            batch_id=batch_id,
            added=tuple(run for report in reports for run in report.added),
            replaced=tuple(slice_ for report in reports for slice_ in report.replaced),
            pending={report.processor: report.pending for report in reports},
            files=tuple(file for report in reports for file in report.files),
            counters=Counters(
                input_rows=sum(report.input_rows for report in reports),
                results_runtime=sum(report.results for report in reports),
                epochs=1,
            ),
            placement=None
            if self.manifest.placement == self._committed_placement
            else self.manifest.placement,
        )


def _replaced(manifest: Manifest, placement: tuple[int, ...]) -> Manifest:
    """The same state under another placement: pending rows are shared out by the groups they belong to."""
    entries = [entry for queue in manifest.pending.values() for entry in queue]
    pending = {}
    for processor in sorted(set(placement)):
        groups = group_set(g for g, owner in enumerate(placement) if owner == processor)
        mine = [replace(entry, groups=entry.groups & groups) for entry in entries if entry.groups & groups]
        pending[processor] = tuple(sorted(mine, key=lambda entry: not entry.emitted))
    return replace(manifest, placement=placement, pending=pending)


def _entry(record: EpochRecord, manifest: Manifest, reports: Sequence[Report]) -> dict[str, Any]:
    return {
        "kind": "epoch",
        "sequence": record.sequence,
        "batch_id": record.batch_id,
        "input_rows": record.counters.input_rows,
        "results": record.counters.results_runtime,
        "pending_rows": manifest.pending_rows,
        "runs": len(manifest.runs),
        "processors": [
            {
                "processor": report.processor,
                "host": report.host,
                "executor": report.executor,
                "input_rows": report.input_rows,
                "probed_rows": report.probed_rows,
                "results": report.results,
                "resident_bytes": report.resident_bytes,
                "loaded_bytes": report.loaded_bytes,
                "busy_seconds": round(report.busy_seconds, 4),
                "seconds": {phase: round(value, 4) for phase, value in report.seconds.items()},
                "group_rows": report.group_rows,
                "group_results": report.group_results,
            }
            for report in reports
        ],
    }
