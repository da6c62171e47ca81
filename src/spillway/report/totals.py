"""The totals of a run, for the head of the page and for `--json`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spillway.manager.journal import EpochEntry
from spillway.report.series import RunningTime


@dataclass(frozen=True, slots=True)
class Totals:
    epochs: int
    missing_epochs: int
    """Committed, but not in the journal: their driver was killed before it wrote the line."""
    seconds: float
    cleanup_seconds: float
    restarts: int
    input_rows: int
    pending_rows: int
    results_runtime: int
    results_cleanup: int
    spills: int
    spilled_bytes: int
    late_rows: int
    expired_rows: int
    budget_bytes: int | None
    """Of the first processor, in the last epoch."""
    resident_bytes_peak: tuple[int, ...]
    lineage_one_in: int = 1
    lineage_error: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def totals(epochs: Sequence[EpochEntry], time: RunningTime) -> Totals:
    peak: dict[int, int] = {}
    for epoch in epochs:
        for part in epoch.processors:
            peak[part.processor] = max(peak.get(part.processor, 0), part.resident_bytes)
    spills = [spill for epoch in epochs for spill in epoch.spills]
    return Totals(
        epochs=len(epochs),
        missing_epochs=1 + epochs[-1].sequence - len(epochs),
        seconds=round(time.ends[-1], 3),
        cleanup_seconds=round(sum(epoch.seconds.total for epoch in epochs if epoch.is_cleanup), 3),
        restarts=len(time.restarts),
        input_rows=sum(epoch.input_rows for epoch in epochs),
        pending_rows=epochs[-1].pending_rows,
        results_runtime=sum(epoch.results for epoch in epochs if not epoch.is_cleanup),
        results_cleanup=sum(epoch.results for epoch in epochs if epoch.is_cleanup),
        spills=len(spills),
        spilled_bytes=sum(spill.bytes for spill in spills),
        late_rows=sum(epoch.late_rows for epoch in epochs),
        expired_rows=sum(epoch.expired_rows for epoch in epochs),
        budget_bytes=epochs[-1].budget_bytes,
        resident_bytes_peak=tuple(peak[processor] for processor in sorted(peak)),
        lineage_one_in=epochs[-1].lineage.one_in,
        lineage_error=epochs[-1].lineage.error,
    )
