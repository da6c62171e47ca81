"""The epoch engine: makes orders from the manifest, has them executed, commits what came back.

An epoch is a fixed sequence: decide what changes, make orders, execute them, commit the manifest record,
deliver the result files to the sink (`commit` does both), write the journal entry.

The engine knows no Spark. It is driven by whoever brings input: Spark's foreachBatch, or a test.
"""

from collections.abc import Callable, Mapping, Sequence

from spillway.errors import BUG, CheckpointError, StateError
from spillway.manager.budget import Budgets
from spillway.manager.change import Change
from spillway.manager.cleanup import Cleaning, can_return, next_batches
from spillway.manager.cleanup_pace import CleanupPace
from spillway.manager.clock import Clock, SystemClock
from spillway.manager.commit import Committer, ExecutedEpoch
from spillway.manager.config import EngineConfig
from spillway.manager.controller import Controller
from spillway.manager.delivery import Deliveries, ResultSink
from spillway.manager.expiration import awaiting_groups, expiring_groups, next_expiry
from spillway.manager.journal import EpochEntry, EpochKind, EpochSeconds, Journal, epoch_entry
from spillway.manager.ordering import OrderMaker
from spillway.model import GroupSet, members, union
from spillway.policy import graph_placement
from spillway.state.graph import Graph
from spillway.state.log import Manifest
from spillway.state.orders import CleanupBatch, Orders, Report
from spillway.state.rows import restricted_to
from spillway.state.storage import Storage

Execute = Callable[[Sequence[Orders]], Sequence[Report]]
"""Runs one epoch: gives every processor its orders and its input, returns their reports."""


class Engine:
    def __init__(
        self,
        config: EngineConfig,
        graph: Graph,
        query_id: str,
        storage: Storage,
        sink: ResultSink | Mapping[str, ResultSink],
        journal: Journal,
        clock: Clock | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        """`sink` is that of the only result, or there is one for each result by name. `clock` and `budgets`
        are those of the machine and of the settings, unless they are given."""
        self.config = config
        self.budgets = config.initial_budgets() if budgets is None else budgets
        self._clock = SystemClock() if clock is None else clock
        self.graph = graph
        self._storage = storage
        self._journal = journal
        deliveries = Deliveries(_sinks(graph, sink), query_id, config.owed_epochs)
        self._committer = Committer(graph, storage, deliveries)
        self.controller = Controller(
            config,
            self.budgets,
            self._clock,
            splittable=graph.splittable,
            heights=graph.group_heights,
            windows=graph.windows,
        )
        self._pace = CleanupPace(config.cleanup.epoch_seconds)
        self._make = OrderMaker(
            config,
            self.budgets,
            graph,
            storage.root,
            self._committer.staging,
            self._committer.token,
            self._pace,
        )
        self._free: GroupSet = 0
        """Groups whose clean-up ended with the last epoch."""
        placement = graph_placement(config.distribution, graph.operator_groups, config.processors)
        self._committer.recover(placement, config.processors)
        self.controller.started(self.manifest.sequence + 1)

    @property
    def manifest(self) -> Manifest:
        """What is committed."""
        return self._committer.manifest

    @property
    def token(self) -> int:
        return self._committer.token

    @property
    def undelivered(self) -> bool:
        """Whether the sink lacks an epoch that is committed."""
        return self._committer.undelivered

    def is_committed(self, batch_id: int) -> bool:
        """Whether this Spark batch is already committed."""
        return batch_id <= self.manifest.batch_id

    @property
    def has_pending(self) -> bool:
        """Whether there are pending rows that the next epoch can probe."""
        return self.manifest.waiting_groups & ~self.manifest.suspended != 0

    @property
    def has_backlog(self) -> bool:
        """Whether more waits than the skew buffer or rotation may hold: then the next batch has to wait."""
        if self.controller.is_behind(self.manifest):
            return True
        if not self.config.buffer_bytes:
            return self.has_pending
        queues = (restricted_to(queue, ~self.manifest.suspended) for queue in self.manifest.pending.values())
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
        from_cleanup: bool = False,
        malformed_rows: int = 0,
    ) -> EpochEntry:
        """One epoch: with a Spark batch as input, or only pending rows. Returns the journal entry.

        `malformed_rows` counts records of the batch that did not fit their source's schema, for the journal.
        `from_cleanup`: the pending rows are missing results of lower joins, so their results are too.
        With `ending` the input has ended: the next turn of suspended groups comes as soon as nothing else is
        pending, and rows stop waiting for the watermark.
        """
        if batch_id is not None and batch_id != self.manifest.batch_id + 1:
            raise CheckpointError(
                f"Spark's batch {batch_id} follows batch {self.manifest.batch_id} in {self._storage.root}: "
                "its checkpoint does not fit the manifest; restore both from one backup"
            )
        if self.has_cursor:
            raise StateError("the clean-up of a group is half done; finish it before the next epoch")
        return self._run(
            execute,
            batch_id,
            Cleaning.NONE,
            ending=ending,
            from_cleanup=from_cleanup,
            malformed_rows=malformed_rows,
        )

    @property
    def has_cleanup(self) -> bool:
        """Whether results between generations are missing."""
        return self.manifest.split_groups != 0

    @property
    def has_cursor(self) -> bool:
        """Whether the clean-up of a group is half done; it must be finished before any input is taken."""
        return bool(self.manifest.cursors)

    @property
    def has_room(self) -> bool:
        """Whether groups that miss results would fit into memory whole."""
        room = self.controller.room_bytes(self.manifest)
        return can_return(self.graph, self.manifest, room, awaiting_groups(self.graph, self.manifest))

    @property
    def has_expiring(self) -> bool:
        """Whether rows on disk could go if the results that they miss were produced."""
        return expiring_groups(self.graph, self.manifest) != 0

    def run_cleanup_epoch(self, execute: Execute, cleaning: Cleaning = Cleaning.ALL) -> EpochEntry:
        """One epoch without input that produces missing results. Returns the journal entry."""
        return self._run(execute, None, cleaning)

    def _run(
        self,
        execute: Execute,
        batch_id: int | None,
        cleaning: Cleaning,
        *,
        ending: bool = False,
        from_cleanup: bool = False,
        malformed_rows: int = 0,
    ) -> EpochEntry:
        self._committer.deliver()
        started, wall = self._clock.seconds(), self._clock.wall()
        clean = cleaning is not Cleaning.NONE
        batches = self._batches(cleaning) if clean else None
        cleaned = union(batch.cursor.groups for batch in batches or ())
        if clean:
            change = self.controller.cleaning(self.manifest, cleaned, leave=cleaning is Cleaning.ALL)
        else:
            change = self.controller.decide(
                self.manifest, arrives=batch_id is not None, forced=ending and not self.has_pending
            )
        self._check_whole(change)
        expiry = next_expiry(self.graph, self.manifest, change.suspended)
        ending = ending and self.graph.waits
        left = union(batch.cursor.groups for batch in batches or () if not batch.cursor.restore)
        orders = self._make.orders(change, expiry, batches, free=self._free | left, ending=ending)
        ordered = self._clock.seconds()
        reports = _one_of_each(execute(orders), orders)
        executed = self._clock.seconds()
        record = self._committer.commit(
            ExecutedEpoch(
                change,
                expiry,
                reports,
                batch_id,
                clean=clean,
                ending=ending,
                from_cleanup=from_cleanup or clean,
            )
        )
        committed = self._clock.seconds()
        self._committer.deliver()
        sunk = self._clock.seconds()
        self._free = record.cleaned
        if clean:
            self._pace.observe(reports)
        self.controller.observe(change, record, reports, sunk - started, clean=clean)
        seconds = EpochSeconds(
            order=ordered - started,
            execute=executed - ordered,
            commit=committed - executed,
            sink=sunk - committed,
            total=sunk - started,
        )
        entry = epoch_entry(
            record,
            self.manifest,
            reports,
            change,
            self.config,
            self.budgets,
            kind=EpochKind.CLEANUP if clean or from_cleanup else EpochKind.EPOCH,
            malformed_rows=malformed_rows,
            time=wall,
            seconds=seconds,
        )
        self._journal.append(entry)
        return entry

    def _batches(self, cleaning: Cleaning) -> list[CleanupBatch]:
        return next_batches(
            self.graph,
            self.manifest,
            cleaning,
            room_bytes=self.controller.room_bytes(self.manifest),
            expiring=expiring_groups(self.graph, self.manifest) if cleaning is Cleaning.EXPIRING else 0,
            awaiting=awaiting_groups(self.graph, self.manifest),
            resident_bytes=self.controller.resident_bytes,
            budgets=self.budgets,
            limits=self.config.cleanup,
        )

    def _check_whole(self, change: Change) -> None:
        if change.spilled and not self.graph.splittable:
            raise StateError(
                f"groups {list(members(change.spilled))} would be spilled, but the operator needs them whole"
            )


def _sinks(graph: Graph, sink: ResultSink | Mapping[str, ResultSink]) -> dict[str, ResultSink]:
    """The sink of each result, by name."""
    sinks = dict(sink) if isinstance(sink, Mapping) else dict.fromkeys(graph.root_names, sink)
    if sorted(sinks) != sorted(graph.root_names) or (len(sinks) > 1 and not isinstance(sink, Mapping)):
        raise StateError(f"results {sorted(graph.root_names)} need one sink each, not {sorted(sinks)}; {BUG}")
    return sinks


def _one_of_each(reports: Sequence[Report], orders: Sequence[Orders]) -> list[Report]:
    """The reports in the order of their processors."""
    ordered = sorted(reports, key=lambda report: report.processor)
    came = [report.processor for report in ordered]
    if came != list(range(len(orders))):
        raise StateError(
            f"epoch {orders[0].sequence} got reports of processors {came}, "
            f"expected one of each of {len(orders)}"
        )
    return ordered
