"""Makes an executed epoch permanent, and gives it to the sink.

The manifest record is the commit. Before it, nothing that the tasks wrote counts; after it, the epoch is
never computed again. The sinks follow (`delivery`). After a crash between the two, `recover` delivers what
each of them lacks by the manifest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spillway.errors import CheckpointError
from spillway.manager.change import Change
from spillway.manager.delivery import Deliveries
from spillway.manager.expiration import unneeded_slices
from spillway.model import group_set, members, union
from spillway.state.graph import Graph, merged_files
from spillway.state.log import Counters, EpochRecord, Manifest, ManifestLog, OwedEpoch
from spillway.state.orders import Report, collected, grown, lineage
from spillway.state.rows import Expiry, next_watermark, youngest
from spillway.state.storage import Storage


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

    def record(
        self,
        graph: Graph,
        token: int,
        placement: tuple[int, ...] | None,
        owed: Mapping[str, tuple[OwedEpoch, ...]],
    ) -> EpochRecord:
        """What the manifest gets; `placement` if it changes with this epoch, `owed` is what sinks lacked
        before."""
        change, reports = self.change, self.reports
        before = change.relocation.manifest
        results = sum(report.results for report in reports)
        latest = youngest([before.latest, *(report.latest for report in reports)], len(graph.windows))
        growth = {} if self.clean else grown(reports)
        files = merged_files(reports)
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
            files={name: files.get(name, ()) for name in graph.root_names},
            delivered={
                name: owed[name][0].sequence - 1 if name in owed else before.sequence
                for name in graph.root_names
            },
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
    """The committed state of a query, and the sinks that follow it."""

    def __init__(self, graph: Graph, storage: Storage, deliveries: Deliveries) -> None:
        self._graph = graph
        self._storage = storage
        self._deliveries = deliveries
        self._log = ManifestLog(storage)
        self._placement: tuple[int, ...] | None = None
        """The placement that the log has."""
        self.manifest: Manifest

    @property
    def token(self) -> int:
        return self._log.token

    @property
    def staging(self) -> dict[str, str | None]:
        """Where the files of each result go."""
        return self._deliveries.staging

    @property
    def undelivered(self) -> bool:
        """Whether some sink lacks an epoch that is committed."""
        return bool(self._deliveries.owed())

    def recover(self, placement: tuple[int, ...], processors: int) -> None:
        """Load what is committed, and deliver what each sink lacks.

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
        self._deliveries.load(manifest, self._storage)
        self._log.sweep(manifest)
        self._deliveries.deliver()
        self.manifest = manifest

    def commit(self, executed: ExecutedEpoch) -> EpochRecord:
        """Make an epoch permanent; `deliver` gives it to the sinks."""
        before = executed.change.relocation.manifest
        placement = None if before.placement == self._placement else before.placement
        record = executed.record(self._graph, self._log.token, placement, self._deliveries.owed())
        self.manifest = self._log.commit(before, record)
        self._deliveries.add(self.manifest)
        self._placement = self.manifest.placement
        return record

    def deliver(self) -> None:
        """Give the sinks the epochs that they lack; no epoch overtakes another."""
        self._deliveries.deliver()
