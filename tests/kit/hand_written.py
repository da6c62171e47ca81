"""How records are written, by hand: the reference for what is on disk.

Files of this format exist, so nothing here changes without another version of it.
`tests/property/model/test_records.py` compares.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from spillway.manager.budget import Budget, Budgets, budget_of
from spillway.manager.change import Change
from spillway.manager.checkpoint import Identity
from spillway.manager.config import EngineConfig
from spillway.manager.pending_queue import suspended_input
from spillway.manager.relocation.decision import Decision, MovesStep, Refusal
from spillway.manager.relocation.moves import MoveInProgress
from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
from spillway.model.groups import members, to_hex
from spillway.policy.placement.suggestion import ForcedSpill, Move
from spillway.state.graph.level_message import LevelMessage
from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import Manifest
from spillway.state.log.record import Counters, EpochRecord
from spillway.state.orders.report import Report
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.pending import Pending
from spillway.state.rows.run import Run
from spillway.state.step import typical_error


def run_json(run: Run) -> list[object]:
    return [
        run.name,
        run.input,
        list(run.position),
        run.last_epoch,
        run.rows,
        run.bytes,
        run.crc32,
        to_hex(run.live),
        to_hex(run.spilled),
        None if run.times is None else list(run.times),
        run.parts,
        to_hex(run.unsaid),
    ]


def pending_json(entry: Pending) -> list[object]:
    numbers = [
        entry.input,
        entry.rows,
        entry.bytes,
        entry.crc32,
        entry.memory_bytes,
        entry.skip,
        entry.emitted,
    ]
    return [entry.name, to_hex(entry.groups), list(entry.counts), entry.earliest, *numbers]


def cursor_json(cursor: Cursor) -> list[object]:
    return [to_hex(cursor.groups), int(cursor.restore), cursor.hash, cursor.row, cursor.emitted]


def group_state_json(state: GroupState) -> list[object]:
    counts = [state.rows, state.bytes, state.results, state.born_epoch, state.active_epoch]
    counts += [state.spilled_bytes, state.spilled_results, state.spilled_rows, state.unsaid_rows]
    return [list(state.ended), *counts, state.outputs, state.inter_rows, state.inter_bytes]


def counters_json(counters: Counters) -> list[int]:
    return [
        counters.input_rows,
        counters.results_runtime,
        counters.results_cleanup,
        counters.epochs,
        counters.spills,
        counters.relocations,
        counters.late_rows,
        counters.expired_rows,
        counters.null_time_rows,
        counters.spilled_bytes,
        counters.read_bytes,
    ]


def queues_json(pending: Mapping[int, tuple[Pending, ...]]) -> dict[str, Any]:
    return {str(processor): [pending_json(entry) for entry in queue] for processor, queue in pending.items()}


def record_json(record: EpochRecord) -> dict[str, Any]:
    return {
        "sequence": record.sequence,
        "token": record.token,
        "batch_id": record.batch_id,
        "added": [run_json(run) for run in record.added],
        "replaced": [[name, to_hex(groups)] for name, groups in record.replaced],
        "pending": queues_json(record.pending),
        "files": {name: [list(file) for file in files] for name, files in record.files.items()},
        "counters": counters_json(record.counters),
        "placement": None if record.placement is None else list(record.placement),
        "processors": record.processors,
        "spilled": to_hex(record.spilled),
        "grown": {str(group): list(counts) for group, counts in record.grown.items()},
        "collected": {str(group): list(counts) for group, counts in record.collected.items()},
        "cursors": [cursor_json(cursor) for cursor in record.cursors],
        "cleaned": to_hex(record.cleaned),
        "restored": to_hex(record.restored),
        "shrunk": {str(group): list(counts) for group, counts in record.shrunk.items()},
        "dropped": [[name, to_hex(groups)] for name, groups in record.dropped],
        "latest": list(record.latest),
        "watermark": record.watermark,
        "suspended": to_hex(record.suspended),
        "delivered": record.delivered,
        "lineage": {str(group): list(counts) for group, counts in record.lineage.items()},
    }


def manifest_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "sequence": manifest.sequence,
        "batch_id": manifest.batch_id,
        "placement": list(manifest.placement),
        "processors": manifest.processors,
        "runs": [run_json(run) for run in manifest.runs.values()],
        "pending": queues_json(manifest.pending),
        "counters": counters_json(manifest.counters),
        "groups": {str(group): group_state_json(state) for group, state in manifest.groups.items()},
        "cursors": [cursor_json(cursor) for cursor in manifest.cursors],
        "latest": list(manifest.latest),
        "watermark": manifest.watermark,
        "suspended": to_hex(manifest.suspended),
        "owed": {
            name: [[epoch.sequence, [list(file) for file in epoch.files]] for epoch in epochs]
            for name, epochs in manifest.owed.items()
        },
        "batch_token": manifest.batch_token,
    }


def report_json(report: Report) -> dict[str, Any]:
    return {
        "processor": report.processor,
        "host": report.host,
        "executor": report.executor,
        "added": [run_json(run) for run in report.added],
        "replaced": [[name, to_hex(groups)] for name, groups in report.replaced],
        "pending": [pending_json(entry) for entry in report.pending],
        "files": report.files,
        "input_rows": report.input_rows,
        "probed_rows": report.probed_rows,
        "results": report.results,
        "resident_bytes": report.resident_bytes,
        "loaded_bytes": report.loaded_bytes,
        "busy_seconds": report.busy_seconds,
        "seconds": report.seconds,
        "group_rows": report.group_rows,
        "group_bytes": report.group_bytes,
        "group_results": report.group_results,
        "freed_bytes": report.freed_bytes,
        "peak_bytes": report.peak_bytes,
        "cursors": [cursor_json(cursor) for cursor in report.cursors],
        "cleaned": to_hex(report.cleaned),
        "restored": to_hex(report.restored),
        "latest": report.latest,
        "late_rows": report.late_rows,
        "null_time_rows": report.null_time_rows,
        "expired_rows": report.expired_rows,
        "expired_bytes": report.expired_bytes,
        "lineage": report.lineage,
        "wall_seconds": report.wall_seconds,
        "collected_rows": report.collected_rows,
        "collected_bytes": report.collected_bytes,
        "read_bytes": report.read_bytes,
        "work": report.work,
        "served_rows": report.served_rows,
    }


def message_json(message: LevelMessage) -> dict[str, Any]:
    return {
        "reports": {str(join): report for join, report in message.reports.items()},
        "input_rows": message.input_rows,
        "seen": sorted(message.seen),
    }


def identity_json(identity: Identity) -> dict[str, Any]:
    return {
        "fingerprint": identity.fingerprint,
        "view": identity.view,
        "schema": [list(columns) for columns in identity.schema],
        "groups": identity.groups,
        "sources": {name: [format_, place] for name, format_, place in identity.sources},
        "sink": identity.sink,
        "tree": identity.tree,
    }


def epoch_json(
    record: EpochRecord,
    manifest: Manifest,
    reports: Sequence[Report],
    change: Change,
    config: EngineConfig,
    budgets: Budgets | None,
) -> dict[str, Any]:
    """The journal's line of an epoch, without its kind, malformed rows and times."""
    waiting = [
        _waiting_json(manifest, processor, config, budget_of(budgets, processor))
        for processor in range(len(reports))
    ]
    return {
        "sequence": record.sequence,
        "token": record.token,
        "batch_id": record.batch_id,
        **_budget_json(budget_of(budgets, 0)),
        "input_rows": record.counters.input_rows,
        "results": record.counters.results_runtime + record.counters.results_cleanup,
        "pending_rows": manifest.pending_rows,
        "late_rows": record.counters.late_rows,
        "null_time_rows": record.counters.null_time_rows,
        "expired_rows": record.counters.expired_rows,
        "watermark": manifest.watermark,
        "runs": len(manifest.runs),
        "spilled_bytes": manifest.counters.spilled_bytes,
        "read_bytes": manifest.counters.read_bytes,
        "missing_bytes": sum(manifest.groups[g].total_bytes for g in members(manifest.split_groups)),
        "spills": [_spill_json(spill) for spill in change.spills],
        "swaps": [_swap_json(swap) for swap in change.swaps],
        "relocation": relocation_json(change.relocation.decision, change.relocation),
        "placement": list(manifest.placement) if record.placement is not None else None,
        "load_signal": config.load_signal,
        "quotas": {str(processor): rows for processor, rows in change.quotas.items()},
        "lineage": _lineage_json(manifest, config.limits.lineage_one_in),
        "suspended_groups": manifest.suspended.bit_count(),
        "waiting_rows": sum(entry["waiting_rows"] for entry in waiting),
        "processors": [
            {
                "processor": report.processor,
                "host": report.host,
                "executor": report.executor,
                **_budget_json(budget_of(budgets, report.processor)),
                "input_rows": report.input_rows,
                "probed_rows": report.probed_rows,
                "results": report.results,
                "resident_bytes": report.resident_bytes,
                "peak_bytes": report.peak_bytes,
                "freed_bytes": report.freed_bytes,
                "loaded_bytes": report.loaded_bytes,
                "read_bytes": report.read_bytes,
                "busy_seconds": round(report.busy_seconds, 4),
                "wall_seconds": round(report.wall_seconds, 4),
                "seconds": {phase: round(value, 4) for phase, value in report.seconds.items()},
                **waiting[report.processor],
                "group_rows": report.group_rows,
                "group_bytes": report.group_bytes,
                "group_results": report.group_results,
            }
            for report in reports
        ],
    }


def _budget_json(budget: Budget | None) -> dict[str, Any]:
    return {
        "budget_bytes": None if budget is None else budget.memory_bytes,
        "state_bytes": None if budget is None else budget.state_bytes,
    }


def _waiting_json(
    manifest: Manifest, processor: int, config: EngineConfig, budget: Budget | None
) -> dict[str, Any]:
    waits = suspended_input(manifest, processor).values()
    limit = config.rotation_backlog_bytes
    return {
        "waiting_rows": sum(rows for rows, _ in waits),
        "waiting_bytes": sum(size for _, size in waits),
        "waiting_limit_bytes": budget.backlog_bytes if budget is not None and limit is None else limit,
    }


def _lineage_json(manifest: Manifest, one_in: int) -> dict[str, Any]:
    outputs = (group.outputs for group in manifest.groups.values()) if one_in > 1 else ()
    return {"one_in": one_in, "error": round(typical_error(outputs, one_in), 4)}


def _swap_json(swap: Swap) -> dict[str, Any]:
    return {
        "processor": swap.processor,
        "suspended": list(members(swap.suspended)),
        "resumed": list(members(swap.resumed)),
        "suspended_bytes": swap.suspended_bytes,
        "resumed_bytes": swap.resumed_bytes,
        "reason": swap.reason,
    }


def _spill_json(spill: Spill) -> dict[str, Any]:
    return {
        "processor": spill.processor,
        "groups": list(members(spill.groups)),
        "bytes": spill.bytes,
        "resident_bytes": spill.resident_bytes,
        "reason": spill.reason,
    }


def relocation_json(decision: Decision, step: MovesStep) -> dict[str, Any]:
    return {
        "begun": [_moving_json(moving) for moving in decision.begun],
        "forced_spills": [_forced_json(spill) for spill in decision.spills],
        "refused": [_refusal_json(refusal) for refusal in decision.refused],
        "postponed": sorted(decision.relieved),
        "loads": [
            {"number": load.number, "sender": load.sender, "receiver": load.receiver, "bytes": load.bytes}
            for load in step.loads
        ],
        "switched": [_moving_json(moving) for moving in step.completed],
        "abandoned": [
            {"number": part.number, "groups": list(members(part.groups)), "reason": part.reason}
            for part in step.abandoned
        ],
    }


def _moving_json(moving: MoveInProgress) -> dict[str, Any]:
    return {"number": moving.number, **_move_json(moving.move)}


def _move_json(move: Move) -> dict[str, Any]:
    return {
        "groups": list(members(move.groups)),
        "sender": move.sender,
        "receiver": move.receiver,
        "bytes": move.bytes,
        "makes_room": move.makes_room,
        "reason": move.reason,
    }


def _forced_json(spill: ForcedSpill) -> dict[str, Any]:
    return {
        "processor": spill.processor,
        "groups": list(members(spill.groups)),
        "bytes": spill.bytes,
        "reason": spill.reason,
    }


def _refusal_json(refusal: Refusal) -> dict[str, Any]:
    suggestion = refusal.suggestion
    entry = _move_json(suggestion) if isinstance(suggestion, Move) else _forced_json(suggestion)
    return {"suggestion": entry, "reason": refusal.reason}
