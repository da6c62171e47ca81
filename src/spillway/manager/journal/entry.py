"""An epoch as a line of the journal."""

from collections.abc import Sequence
from typing import Any

from spillway.manager.budget import Budget, Budgets, budget_of
from spillway.manager.change import Change
from spillway.manager.config import EngineConfig
from spillway.manager.journal.moves import relocation_entry
from spillway.manager.pending_queue import suspended_input
from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
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
) -> dict[str, Any]:
    """The journal entry of an epoch without its times; it has a `placement` if groups have moved."""
    first = budget_of(budgets, 0)
    waiting = [
        _waiting_entry(manifest, processor, config, budget_of(budgets, processor))
        for processor in range(len(reports))
    ]
    return {
        "sequence": record.sequence,
        "token": record.token,
        "batch_id": record.batch_id,
        **_budget_entry(first),
        "input_rows": record.counters.input_rows,
        "results": record.counters.results_runtime + record.counters.results_cleanup,
        "pending_rows": manifest.pending_rows,
        "late_rows": record.counters.late_rows,
        "null_time_rows": record.counters.null_time_rows,
        "expired_rows": record.counters.expired_rows,
        "watermark": manifest.watermark,
        "runs": len(manifest.runs),
        "spills": [_spill_entry(spill) for spill in change.spills],
        "swaps": [_swap_entry(swap) for swap in change.swaps],
        "relocation": relocation_entry(change.relocation.decision, change.relocation),
        "placement": list(manifest.placement) if record.placement is not None else None,
        "load_signal": config.load_signal,
        "quotas": {str(processor): rows for processor, rows in change.quotas.items()},
        "lineage": _lineage_entry(manifest, config.limits.lineage_one_in),
        "suspended_groups": manifest.suspended.bit_count(),
        "waiting_rows": sum(entry["waiting_rows"] for entry in waiting),
        "processors": [
            {
                "processor": report.processor,
                "host": report.host,
                "executor": report.executor,
                **_budget_entry(budget_of(budgets, report.processor)),
                "input_rows": report.input_rows,
                "probed_rows": report.probed_rows,
                "results": report.results,
                "resident_bytes": report.resident_bytes,
                "peak_bytes": report.peak_bytes,
                "freed_bytes": report.freed_bytes,
                "loaded_bytes": report.loaded_bytes,
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


def _budget_entry(budget: Budget | None) -> dict[str, Any]:
    return {
        "budget_bytes": None if budget is None else budget.memory_bytes,
        "state_bytes": None if budget is None else budget.state_bytes,
    }


def _waiting_entry(
    manifest: Manifest, processor: int, config: EngineConfig, budget: Budget | None
) -> dict[str, Any]:
    """How much input waits for suspended groups of a processor, and how much may wait."""
    waits = suspended_input(manifest, processor).values()
    limit = config.rotation_backlog_bytes
    return {
        "waiting_rows": sum(rows for rows, _ in waits),
        "waiting_bytes": sum(size for _, size in waits),
        "waiting_limit_bytes": budget.backlog_bytes if budget is not None and limit is None else limit,
    }


def _lineage_entry(manifest: Manifest, one_in: int) -> dict[str, Any]:
    outputs = (group.outputs for group in manifest.groups.values()) if one_in > 1 else ()
    return {"one_in": one_in, "error": round(typical_error(outputs, one_in), 4)}


def _swap_entry(swap: Swap) -> dict[str, Any]:
    return {
        "processor": swap.processor,
        "suspended": list(members(swap.suspended)),
        "resumed": list(members(swap.resumed)),
        "suspended_bytes": swap.suspended_bytes,
        "resumed_bytes": swap.resumed_bytes,
        "reason": swap.reason,
    }


def _spill_entry(spill: Spill) -> dict[str, Any]:
    return {
        "processor": spill.processor,
        "groups": list(members(spill.groups)),
        "bytes": spill.bytes,
        "resident_bytes": spill.resident_bytes,
        "reason": spill.reason,
    }
