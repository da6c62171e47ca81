"""Makes an executed epoch permanent, and gives it to the sink.

The manifest record is the commit. Before it, nothing that the tasks wrote counts; after it, the epoch is
never computed again. The sink follows: it lacks the last epoch at most, because the next one does not start
before that is delivered. After a crash between the two, `recover` delivers the epoch from the manifest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from spillway.errors import CheckpointError
from spillway.manager.change import Change
from spillway.manager.expiration import unneeded_slices
from spillway.model import group_set, members, union
from spillway.state.graph import Graph
from spillway.state.log import Counters, EpochRecord, Manifest, ManifestLog
from spillway.state.orders import Report, collected, grown, lineage
from spillway.state.rows import Expiry, next_watermark, youngest
from spillway.state.storage import Storage


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One Parquet file of result rows, as the task that wrote it reports it."""

    path: str
    """Relative to the sink's staging directory."""
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedEpoch:
    """The results of one epoch, written but not yet visible."""

    sequence: int
    query_id: str
    files: tuple[ResultFile, ...]
    rows: int


class ResultSink(Protocol):
    """The part of a sink that the engine needs."""

    @property
    def staging(self) -> str | None: ...

    def last_committed(self, query_id: str) -> int: ...

    def commit(self, epoch: StagedEpoch) -> None: ...


@dataclass(frozen=True, slots=True)
class ExecutedEpoch:
    """An epoch that was executed: its files are written, and nothing refers to them yet."""

    change: Change
    expiry: Expiry
    reports: Sequence[Report]
    batch_id: int | None
    clean: bool
    """Whether it produced missing results and took no input."""
    ending: bool
    """Whether the input had ended, so that all rows are final."""
    from_cleanup: bool
    """Whether its results had been missing."""

    def record(self, graph: Graph, token: int, placement: tuple[int, ...] | None) -> EpochRecord:
        """What the manifest gets; `placement` if it changes with this epoch."""
        change, reports = self.change, self.reports
        before = change.relocation.manifest
        results = sum(report.results for report in reports)
        latest = youngest([before.latest, *(report.latest for report in reports)], len(graph.windows))
        growth = {} if self.clean else grown(reports)
        unsaid = collected(reports)
        changed = change.spilled | group_set(growth) | group_set(unsaid)
        return EpochRecord(
            sequence=before.sequence + 1,
            token=token,
            batch_id=self.batch_id,
            added=tuple(run for report in reports for run in report.added),
            replaced=tuple(slice_ for report in reports for slice_ in report.replaced),
            dropped=() if self.clean else unneeded_slices(graph, before, self.expiry, changed),
            pending={report.processor: report.pending for report in reports},
            files=tuple(file for report in reports for file in report.files),
            counters=Counters(
                input_rows=sum(report.input_rows for report in reports),
                results_runtime=0 if self.from_cleanup else results,
                results_cleanup=results if self.from_cleanup else 0,
                epochs=1,
                spills=len(change.spills),
                relocations=len(change.relocation.completed),
                late_rows=sum(report.late_rows for report in reports),
                null_time_rows=sum(report.null_time_rows for report in reports),
                expired_rows=sum(sum(report.expired_rows.values()) for report in reports),
                spilled_bytes=sum(before.groups[group].bytes for group in members(change.spilled))
                + sum(size for _, size in unsaid.values()),
                read_bytes=sum(report.read_bytes for report in reports),
            ),
            placement=placement,
            processors=change.relocation.processors,
            spilled=change.spilled,
            suspended=change.suspended,
            grown=growth,
            collected=unsaid,
            lineage=lineage(reports),
            cursors=tuple(cursor for report in reports for cursor in report.cursors)
            if self.clean
            else before.cursors,
            cleaned=union(report.cleaned for report in reports),
            restored=union(report.restored for report in reports),
            shrunk={
                group: (rows, report.expired_bytes.get(group, 0))
                for report in reports
                for group, rows in report.expired_rows.items()
            },
            latest=latest,
            watermark=next_watermark(before.watermark, latest, graph.windows, ended=self.ending),
        )


class Committer:
    """The committed state of a query, and the sink that follows it."""

    def __init__(self, graph: Graph, storage: Storage, sink: ResultSink, query_id: str) -> None:
        self._graph = graph
        self._storage = storage
        self._sink = sink
        self._query_id = query_id
        self._log = ManifestLog(storage)
        self._placement: tuple[int, ...] | None = None
        """The placement that the log has."""
        self._undelivered: EpochRecord | None = None
        self.manifest: Manifest

    @property
    def token(self) -> int:
        return self._log.token

    @property
    def undelivered(self) -> bool:
        """Whether the sink lacks an epoch that is committed."""
        return self._undelivered is not None

    def recover(self, placement: tuple[int, ...], processors: int) -> None:
        """Load what is committed, and deliver what the sink lacks.

        `placement` is that of a new query, and of one that has another number of processors than before.
        """
        manifest = self._log.load(placement)
        if manifest.sequence >= 0:
            self._placement = manifest.placement
        if manifest.processor_count != processors:
            manifest = replace(manifest.with_placement(placement), processors=processors)
        if manifest.spilled_groups and not self._graph.splittable:
            raise CheckpointError(
                f"groups {list(members(manifest.spilled_groups))} in {self._storage.root} were split by an "
                "earlier version, so their statistics are wrong; start with an empty checkpoint and sink"
            )
        delivered = self._sink.last_committed(self._query_id)
        self._check_sink(delivered, manifest.sequence)
        self._log.sweep(manifest)
        for record in self._log.records_after(delivered):
            self._sink.commit(self._staged(record))
        self.manifest = manifest

    def commit(self, executed: ExecutedEpoch) -> EpochRecord:
        """Make an epoch permanent; `deliver` gives it to the sink."""
        before = executed.change.relocation.manifest
        placement = None if before.placement == self._placement else before.placement
        record = executed.record(self._graph, self._log.token, placement)
        self.manifest = self._log.commit(before, record)
        self._undelivered = record
        self._placement = self.manifest.placement
        return record

    def deliver(self) -> None:
        """Give the sink the epoch that it lacks, if any; the next one must not overtake it."""
        if self._undelivered is not None:
            self._sink.commit(self._staged(self._undelivered))
            self._undelivered = None

    def _staged(self, record: EpochRecord) -> StagedEpoch:
        files = tuple(ResultFile(name, rows, size) for name, rows, size in record.files)
        return StagedEpoch(record.sequence, self._query_id, files, sum(file.rows for file in files))

    def _check_sink(self, delivered: int, committed: int) -> None:
        if delivered > committed:
            raise CheckpointError(
                f"the sink has epoch {delivered}, but the manifest in {self._storage.uri('manifest')} ends "
                f"with epoch {committed}: records are missing; restore them from a backup"
            )
        if delivered < committed - 1:  # an epoch begins only when the sink has those before it
            raise CheckpointError(
                f"the sink has epochs up to {delivered}, but the checkpoint {self._storage.root} has "
                f"epochs up to {committed}: the sink was deleted, changed or restored from an "
                "older copy; restore it, or start with a new checkpoint and an empty sink"
            )
