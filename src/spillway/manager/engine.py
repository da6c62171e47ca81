"""The epoch engine: makes orders from the manifest, has them executed, commits what came back.

Order of a commit: the tasks' files are there; the manifest record makes the epoch permanent; the sink gets
the result files; the journal is told. After a crash between any two of these, `recover` repeats the sink
commit from the manifest. A committed epoch is never computed again.

The engine knows no Spark. It is driven by whoever brings input: Spark's foreachBatch, or a test.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from spillway.errors import CheckpointError, StateError
from spillway.manager.budget import Budgets
from spillway.manager.cleanup import begun_batches, fitting_groups, new_batches
from spillway.manager.commit import ResultSink
from spillway.manager.config import EngineConfig
from spillway.manager.controller import Controller
from spillway.manager.epoch_record import EpochRun, epoch_record
from spillway.manager.journal import Journal, epoch_entry
from spillway.manager.ordering import OrderMaker
from spillway.manager.pending_queue import earliest_to_come
from spillway.model import GroupSet, all_groups, group_set, members, union
from spillway.policy import distributed
from spillway.state.graph import Graph
from spillway.state.log import EpochRecord, Manifest, ManifestLog, placed_anew
from spillway.state.orders import CleanupBatch, Orders, Report
from spillway.state.rows import Expiry, expired_slices, lagging_groups, narrowed
from spillway.state.storage import Storage

Execute = Callable[[Sequence[Orders]], Sequence[Report]]
"""Runs one epoch: gives every processor its orders and its input, returns their reports."""


class Cleaning(Enum):
    """What an epoch cleans up."""

    NONE = "none"
    BEGUN = "begun"
    FITTING = "fitting"
    """Groups that then fit into memory whole."""
    LAGGING = "lagging"
    """Groups whose rows on disk are kept for missing results only: they are too old for any other."""
    ALL = "all"


class Engine:
    def __init__(
        self,
        config: EngineConfig,
        graph: Graph,
        query_id: str,
        storage: Storage,
        sink: ResultSink,
        journal: Journal,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.graph = graph
        self._query_id = query_id
        self._storage = storage
        self._sink = sink
        self._journal = journal
        self._log = ManifestLog(storage)
        self.controller = Controller(
            config,
            splittable=graph.splittable,
            clock=clock,
            heights=graph.group_heights,
            windows=graph.windows,
        )
        self._make = OrderMaker(config, graph, storage.root, sink.staging, self._log.token)
        self._free: GroupSet = 0
        self._committed_placement: tuple[int, ...] | None = None
        self._owed: EpochRecord | None = None
        """An epoch that is committed, and that the sink does not have."""
        self.manifest = self._recover()
        self.controller.started(self.manifest.sequence + 1)

    def _recover(self) -> Manifest:
        config = self.config
        each = distributed(config.distribution, config.groups, config.processors)
        placement = each * len(self.graph.operators)
        manifest = self._log.load(placement)
        if manifest.sequence >= 0:
            self._committed_placement = manifest.placement
        if manifest.processor_count != config.processors:
            manifest = replace(placed_anew(manifest, placement), processors=config.processors)
        if manifest.spilled_groups and not self.graph.splittable:
            raise CheckpointError(
                f"groups {list(members(manifest.spilled_groups))} in {self._storage.root} were split by an "
                "earlier version, so their statistics are wrong; begin anew with an empty checkpoint and sink"
            )
        committed = self._sink.last_committed(self._query_id)
        if committed > manifest.sequence:
            raise CheckpointError(
                f"the sink has epoch {committed}, but the manifest in {self._storage.uri('manifest')} ends "
                f"with epoch {manifest.sequence}: records are missing; restore them from a backup"
            )
        if committed < manifest.sequence - 1:  # an epoch begins only when the sink has those before it
            raise CheckpointError(
                f"the sink has epochs up to {committed}, but the checkpoint {self._storage.root} has "
                f"epochs up to {manifest.sequence}: the sink was deleted, changed or restored from an "
                "older copy; restore it, or start with a new checkpoint and an empty sink"
            )
        self._log.sweep(manifest)
        for record in self._log.records_after(committed):
            self._sink.commit_files(record.sequence, record.files)
        return manifest

    @property
    def token(self) -> int:
        return self._log.token

    @property
    def owes(self) -> bool:
        """Whether the sink lacks an epoch that is committed."""
        return self._owed is not None

    def has_taken(self, batch_id: int) -> bool:
        """Whether this Spark batch is already committed."""
        return batch_id <= self.manifest.batch_id

    @property
    def has_pending(self) -> bool:
        """Whether rows wait that the next epoch can probe."""
        return self.manifest.waiting_groups & ~self.manifest.suspended != 0

    @property
    def has_backlog(self) -> bool:
        """Whether more waits than the skew buffer, or rotation, may hold: the next batch has to wait then."""
        if self.controller.is_behind(self.manifest):
            return True
        if not self.config.buffer_bytes:
            return self.has_pending
        queues = (narrowed(queue, ~self.manifest.suspended) for queue in self.manifest.pending.values())
        return any(sum(entry.bytes_left for entry in queue) > self.config.buffer_bytes for queue in queues)

    @property
    def has_waiting(self) -> bool:
        """Whether rows wait for the turn of their group, or for the watermark to pass them."""
        manifest = self.manifest
        entries = (entry for queue in manifest.pending.values() for entry in queue)
        return any(not e.has_final(manifest.watermark) or e.groups & manifest.suspended for e in entries)

    def run_epoch(
        self,
        execute: Execute,
        batch_id: int | None,
        *,
        ending: bool = False,
        late: bool = False,
        malformed_rows: int = 0,
    ) -> dict[str, Any]:
        """One epoch: with a Spark batch as input, or only pending rows. Returns the journal entry.

        `malformed_rows` is how many records of the batch did not fit their source's schema, for the journal.

        `late` says that the pending rows are missing results of lower joins: what comes of them is too.
        At the end of the input the next turn of suspended groups comes as soon as nothing else is pending,
        and no row waits for the watermark any more.
        """
        if batch_id is not None and batch_id != self.manifest.batch_id + 1:
            raise CheckpointError(
                f"Spark's batch {batch_id} follows batch {self.manifest.batch_id} in {self._storage.root}: "
                "its checkpoint does not fit the manifest; restore both from one backup"
            )
        if self.has_begun_cleanup:
            raise StateError("the clean-up of a group is half done; finish it before the next epoch")
        return self._run(
            execute, batch_id, Cleaning.NONE, ending=ending, late=late, malformed_rows=malformed_rows
        )

    @property
    def has_cleanup(self) -> bool:
        """Whether results between generations are missing."""
        return self.manifest.split_groups != 0

    @property
    def has_begun_cleanup(self) -> bool:
        """Whether the clean-up of a group is half done; then no input may be taken before it is through."""
        return bool(self.manifest.cursors)

    @property
    def has_room(self) -> bool:
        """Whether groups that miss results would fit into memory whole."""
        return self._fitting() != 0

    @property
    def has_lagging(self) -> bool:
        """Whether rows on disk could go if the results that they miss were produced."""
        return self._lagging() != 0

    def _lagging(self) -> GroupSet:
        return lagging_groups(tuple(self.manifest.runs.values()), self._expiry()) & self.manifest.split_groups

    def _expiry(self, suspended: GroupSet = 0) -> Expiry:
        """What may expire in the next epoch, in which these groups are suspended."""
        if self.graph.waits:
            return Expiry(self.graph.windows, earliest_to_come(self.manifest, suspended))
        unfinished = self.manifest.mid_row_groups
        keep = self.manifest.spilled_groups | self.manifest.waiting_groups
        keep |= self._to_come()
        keep = all_groups(self.graph.groups) if unfinished else keep
        return Expiry(self.graph.windows, self.manifest.watermark, keep)

    def _to_come(self) -> GroupSet:
        """Groups of joins that may still get old rows: below them results are missing, or rows wait."""
        return self.graph.downstream(self.manifest.split_groups | self.manifest.waiting_groups)

    def _fitting(self) -> GroupSet:
        return fitting_groups(self.manifest, self.controller.room_bytes(self.manifest))

    def run_cleanup_epoch(self, execute: Execute, cleaning: Cleaning = Cleaning.ALL) -> dict[str, Any]:
        """One epoch without input that produces missing results. Returns the journal entry."""
        return self._run(execute, None, cleaning)

    def _run(
        self,
        execute: Execute,
        batch_id: int | None,
        cleaning: Cleaning,
        *,
        ending: bool = False,
        late: bool = False,
        malformed_rows: int = 0,
    ) -> dict[str, Any]:
        self._deliver()
        clean = cleaning is not Cleaning.NONE
        forced, ending = ending and not self.has_pending, ending and self.graph.waits
        started, wall = time.perf_counter(), time.time()
        batches = self._batches(cleaning) if clean else None
        cleaned = union(batch.cursor.groups for batch in batches or ())
        growing = self.graph.downstream(cleaned)
        change = (
            self.controller.cleaning(self.manifest, cleaned, growing)
            if clean
            else self.controller.decide(self.manifest, forced=forced)
        )
        if change.spilled and not self.graph.splittable:
            raise StateError(
                f"groups {list(members(change.spilled))} would be spilled, but the operator needs them whole"
            )
        before = self.manifest
        if change.placement != before.placement:
            before = placed_anew(before, change.placement)
        expiry = self._expiry(change.suspended(before.suspended))
        orders = self._make.orders(
            before,
            change,
            expiry,
            batches,
            free=self._free | union(one.cursor.groups for one in batches or () if not one.cursor.restore),
            ending=ending,
        )
        ordered = time.perf_counter()
        reports = sorted(execute(orders), key=lambda report: report.processor)
        if [report.processor for report in reports] != list(range(change.processors)):
            came = [report.processor for report in reports]
            raise StateError(
                f"epoch {orders[0].sequence} got reports of processors {came}, "
                f"expected one of each of {change.processors}"
            )
        executed = time.perf_counter()
        run = EpochRun(
            orders[0].sequence, self._log.token, batch_id, change, clean, growing, ending, late=late or clean
        )
        placement = None if before.placement == self._committed_placement else before.placement
        record = epoch_record(run, before, self.graph.windows, reports, placement)
        if not clean:
            record = replace(record, dropped=self._dropped(expiry, record))
        self.manifest = self._log.commit(before, record)
        self._owed = record
        self._committed_placement = self.manifest.placement
        committed = time.perf_counter()
        self._deliver()
        sunk = time.perf_counter()
        self._free = record.cleaned
        self.controller.observe(change, record, reports, sunk - started, clean=clean)
        entry = epoch_entry(record, self.manifest, reports, change, self.config) | {
            "kind": "cleanup" if clean or late else "epoch",
            "malformed_rows": malformed_rows,
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

    def _deliver(self) -> None:
        """Give the sink the epoch that it does not have; the next one must not get ahead of it."""
        if self._owed is not None:
            self._sink.commit_files(self._owed.sequence, self._owed.files)
            self._owed = None

    def _dropped(self, expiry: Expiry, record: EpochRecord) -> tuple[tuple[str, GroupSet], ...]:
        """Slices on disk that nothing needs after this epoch: groups that are whole, and got no rows.

        Nor do rows wait for them: those came in when the watermark was lower.
        """
        manifest = self.manifest
        if not expiry.windows or manifest.mid_row_groups:
            return ()
        busy = union(
            (record.spilled, group_set(record.grown), manifest.split_groups, manifest.waiting_groups)
        )
        busy |= self._to_come()
        groups = manifest.groups
        whole = group_set(g for g, state in groups.items() if len(state.ended) == 1 and not state.rows)
        return expired_slices(tuple(manifest.runs.values()), expiry, whole & ~busy)

    def _batches(self, cleaning: Cleaning) -> list[CleanupBatch]:
        batches = begun_batches(self.manifest)
        if cleaning is Cleaning.BEGUN:
            return batches
        wanted = self._lagging() if cleaning is Cleaning.LAGGING else self.manifest.split_groups
        wanted = self._next_to_clean(wanted, union(batch.cursor.groups for batch in batches))
        back = 0 if cleaning is Cleaning.ALL else self._fitting() & wanted
        stay = 0 if cleaning is Cleaning.FITTING else wanted & ~back
        budgets = self.config.budgets
        batch_bytes = None if budgets is None else self._cleanup_bytes(budgets, stay)
        for groups in self.graph.group_sets:
            batches += new_batches(self.manifest, back & groups, batch_bytes, restore=True)
            batches += new_batches(self.manifest, stay & groups, batch_bytes, restore=False)
        return batches

    def _cleanup_bytes(self, budgets: Budgets, leaving: GroupSet) -> int:
        """What is cleaned up at a time, when the images of the groups that leave memory are gone."""
        images = dict.fromkeys(range(self.manifest.processor_count), 0) | self.controller.resident_bytes
        for group in members(leaving):
            images[self.manifest.placement[group]] -= self.manifest.groups[group].bytes
        sizes = {processor: max(0, size) for processor, size in images.items()}
        return min(budgets.of(processor).cleanup_bytes(size) for processor, size in sizes.items())

    def _next_to_clean(self, wanted: GroupSet, begun: GroupSet) -> GroupSet:
        """Of the groups that miss results, those to begin with now.

        In a tree from below: a join whose groups are cleaned up must get no rows meanwhile, and one that will
        get rows anyway is better left until it has them.
        """
        wanted &= ~begun
        if begun:
            return wanted & union(groups for groups in self.graph.group_sets if groups & begun)
        lowest = wanted & ~self.graph.downstream(wanted)
        complete = lowest & ~self._to_come()
        return complete or lowest
