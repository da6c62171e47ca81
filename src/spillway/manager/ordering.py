"""Makes the orders of an epoch from the manifest, the change it begins with, and what it cleans up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spillway.manager.budget import Budgets, budget_of
from spillway.manager.change import Change
from spillway.manager.cleanup import runs_of, shared_out
from spillway.manager.cleanup_pace import CleanupPace
from spillway.manager.config import EngineConfig
from spillway.model import GroupSet, placed_on, union
from spillway.state.graph import Graph
from spillway.state.log import Manifest
from spillway.state.orders import CleanupBatch, Limits, Orders
from spillway.state.rows import Expiry, Run, choose_merges, in_order, restricted_to


@dataclass(frozen=True, slots=True)
class OrderMaker:
    config: EngineConfig
    budgets: Budgets | None
    graph: Graph
    state: str
    """Root of the durable tier."""
    staging: Mapping[str, str | None]
    """Per result, where its files go."""
    token: int
    pace: CleanupPace

    def orders(
        self,
        change: Change,
        expiry: Expiry,
        batches: Sequence[CleanupBatch] | None,
        *,
        free: GroupSet,
        ending: bool,
    ) -> list[Orders]:
        """One for each processor; `batches` in a clean-up epoch; `free` are groups that were cleaned up."""
        collects = self.config.deferred and batches is None and not change.relocation.manifest.mid_row_groups
        relocation, suspended = change.relocation, change.suspended
        manifest, processors = relocation.manifest, relocation.processors
        cleaned = union(batch.cursor.groups for batch in batches or ())
        shares = shared_out(batches or (), processors)
        runs = in_order(manifest.runs.values())
        orders = []
        for processor in range(processors):
            groups = placed_on(manifest.placement, processor)
            live = groups & ~(change.spilled | suspended)
            mine = tuple(replace(run, live=run.live & live) for run in runs if run.live & live)
            expired = tuple(run.name for run in mine if expiry.fully_expired(run))
            incoming = _staying(relocation.incoming.get(processor, ()), change.leaving)
            # A receiver frees what has left memory at the sender, but not what it is still to get.
            kept = ~union(run.live for run in incoming) if incoming else groups
            lasting = [_reduced(run, manifest) for run in mine if run.name not in expired]
            orders.append(
                Orders(
                    sequence=manifest.sequence + 1,
                    processor=processor,
                    groups=groups,
                    runs=mine,
                    merges=()
                    if processor in relocation.senders
                    else self._merges(processor, lasting, expiry),
                    pending=restricted_to(manifest.pending.get(processor, ()), ~suspended),
                    limits=self._limits(processor, change, clean=batches is not None),
                    state=self.state,
                    tier=f"{self.config.tier}/{self.token:06d}/{processor:04d}",
                    staging=self.staging,
                    run_compression=self.config.run_compression,
                    result_compression=self.config.result_compression,
                    free=(change.leaving | free) & kept | relocation.released(processor),
                    cleanup=shares[processor],
                    cleanup_runs=runs_of(runs, shares[processor]),
                    clean=batches is not None,
                    collects=collects,
                    expired=expired,
                    watermark=manifest.watermark,
                    keep=expiry.keep,
                    suspended=suspended & groups,
                    suspended_pending=restricted_to(manifest.pending.get(processor, ()), suspended),
                    ending=ending,
                    incoming=incoming,
                    row_seconds=self.config.emulation.seconds_per_row(processor),
                    cleaned=cleaned,
                )
            )
        return orders

    def _limits(self, processor: int, change: Change, *, clean: bool) -> Limits:
        budget, limits = budget_of(self.budgets, processor), self.config.limits
        if clean:
            limits = self.pace.limits(limits)
        if budget is not None:
            limits = budget.limits(limits, len(self.graph.inputs))
        quota = change.quotas.get(processor)
        return limits if quota is None else replace(limits, rows=min(limits.rows, quota))

    def _merges(self, processor: int, runs: list[Run], expiry: Expiry) -> tuple[tuple[str, ...], ...]:
        budget, limits = budget_of(self.budgets, processor), self.config.compaction
        limits = limits if budget is None else budget.compaction(limits)
        merges = choose_merges(runs, len(self.graph.inputs), limits, expiry)
        return (*self.graph.extra_merges(runs, limits, merges), *merges)


def _staying(runs: Sequence[Run], leaving: GroupSet) -> tuple[Run, ...]:
    """What is to be loaded of the runs: not what leaves memory in the same epoch."""
    return tuple(replace(run, live=run.live & ~leaving) for run in runs if run.live & ~leaving)


def _reduced(run: Run, manifest: Manifest) -> Run:
    """The run as small as its live groups are, if all its groups are equal: that is what a merge copies."""
    whole = manifest.runs[run.name]
    groups = (whole.live | whole.spilled).bit_count()
    return replace(run, bytes=run.bytes * run.live.bit_count() // groups)
