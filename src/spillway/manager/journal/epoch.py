"""The journal entry of an epoch, from its record, its reports and what was decided before it."""

from collections.abc import Sequence

from spillway.manager.budget import Budgets, budget_of
from spillway.manager.change import Change
from spillway.manager.config import EngineConfig
from spillway.manager.journal.entry import (
    AbandonedEntry,
    EpochEntry,
    EpochKind,
    EpochSeconds,
    LineageEntry,
    MoveEntry,
    ProcessorEntry,
    RelocationEntry,
)
from spillway.manager.pending_queue import suspended_input
from spillway.manager.relocation import Decision, MoveInProgress, MovesStep
from spillway.model import members
from spillway.state.log import EpochRecord, Manifest
from spillway.state.orders import Report
from spillway.state.step import typical_error


def epoch_entry(
    record: EpochRecord,
    manifest: Manifest,
    reports: Sequence[Report],
    change: Change,
    config: EngineConfig,
    budgets: Budgets | None,
    *,
    kind: EpochKind,
    malformed_rows: int,
    time: float,
    seconds: EpochSeconds,
) -> EpochEntry:
    """`manifest` is what is committed after the epoch."""
    first = budget_of(budgets, 0)
    processors = tuple(_processor_entry(manifest, report, config, budgets) for report in reports)
    one_in = config.limits.lineage_one_in
    outputs = (group.outputs for group in manifest.groups.values()) if one_in > 1 else ()
    return EpochEntry(
        sequence=record.sequence,
        token=record.token,
        batch_id=record.batch_id,
        budget_bytes=None if first is None else first.memory_bytes,
        state_bytes=None if first is None else first.state_bytes,
        input_rows=record.counters.input_rows,
        results=record.counters.results_runtime + record.counters.results_cleanup,
        pending_rows=manifest.pending_rows,
        late_rows=record.counters.late_rows,
        null_time_rows=record.counters.null_time_rows,
        expired_rows=record.counters.expired_rows,
        watermark=manifest.watermark,
        runs=len(manifest.runs),
        spilled_bytes=manifest.counters.spilled_bytes,
        read_bytes=manifest.counters.read_bytes,
        missing_bytes=sum(manifest.groups[group].total_bytes for group in members(manifest.split_groups)),
        spills=change.spills,
        swaps=change.swaps,
        relocation=relocation_entry(change.relocation.decision, change.relocation),
        placement=manifest.placement if record.placement is not None else None,
        load_signal=config.load_signal,
        quotas=change.quotas,
        lineage=LineageEntry(one_in, round(typical_error(outputs, one_in), 4)),
        suspended_groups=manifest.suspended.bit_count(),
        waiting_rows=sum(processor.waiting_rows for processor in processors),
        processors=processors,
        kind=kind,
        malformed_rows=malformed_rows,
        time=time,
        seconds=seconds,
    )


def _processor_entry(
    manifest: Manifest, report: Report, config: EngineConfig, budgets: Budgets | None
) -> ProcessorEntry:
    budget = budget_of(budgets, report.processor)
    waits = suspended_input(manifest, report.processor).values()
    limit = config.rotation_backlog_bytes
    return ProcessorEntry(
        processor=report.processor,
        host=report.host,
        executor=report.executor,
        budget_bytes=None if budget is None else budget.memory_bytes,
        state_bytes=None if budget is None else budget.state_bytes,
        input_rows=report.input_rows,
        probed_rows=report.probed_rows,
        results=report.results,
        resident_bytes=report.resident_bytes,
        peak_bytes=report.peak_bytes,
        freed_bytes=report.freed_bytes,
        loaded_bytes=report.loaded_bytes,
        read_bytes=report.read_bytes,
        busy_seconds=round(report.busy_seconds, 4),
        wall_seconds=round(report.wall_seconds, 4),
        seconds={phase: round(value, 4) for phase, value in report.seconds.items()},
        waiting_rows=sum(rows for rows, _ in waits),
        waiting_bytes=sum(size for _, size in waits),
        waiting_limit_bytes=budget.backlog_bytes if budget is not None and limit is None else limit,
        group_rows=report.group_rows,
        group_bytes=report.group_bytes,
        group_results=report.group_results,
    )


def relocation_entry(decision: Decision, step: MovesStep) -> RelocationEntry:
    return RelocationEntry(
        begun=tuple(map(_move_entry, decision.begun)),
        forced_spills=decision.spills,
        refused=decision.refused,
        postponed=tuple(sorted(decision.relieved)),
        loads=step.loads,
        switched=tuple(map(_move_entry, step.completed)),
        abandoned=tuple(AbandonedEntry(part.number, part.groups, part.reason) for part in step.abandoned),
    )


def _move_entry(moving: MoveInProgress) -> MoveEntry:
    move = moving.move
    return MoveEntry(
        moving.number, move.groups, move.sender, move.receiver, move.bytes, move.makes_room, move.reason
    )
