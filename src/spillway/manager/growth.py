"""How much state the next epoch will add on each processor, as far as the last ones tell.

What waits is known. What arrives is taken to be as much as last time: what became state then, and what was
parked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spillway.state.log import Manifest
from spillway.state.orders import Report
from spillway.state.rows import Pending, restricted_to


@dataclass(slots=True)
class ExpectedGrowth:
    _arrived: dict[int, int] = field(default_factory=dict)
    """Per processor, bytes of the last input."""

    def observe(self, before: Manifest, reports: Sequence[Report], suspended: int) -> None:
        """Take in an epoch with input."""
        for report in reports:
            grown = sum(report.group_bytes.values())
            waited = _waiting_bytes(before.pending.get(report.processor, ()), suspended)
            waits = _waiting_bytes(report.pending, suspended)
            if report.input_rows:
                self._arrived[report.processor] = max(0, grown + waits - waited)

    def expected(self, manifest: Manifest, *, arrives: bool) -> Mapping[int, int]:
        """Bytes per processor; `arrives` if there will be input besides what waits."""
        return {
            processor: _waiting_bytes(manifest.pending.get(processor, ()), manifest.suspended)
            + (self._arrived.get(processor, 0) if arrives else 0)
            for processor in range(manifest.processor_count)
        }


def _waiting_bytes(queue: Sequence[Pending], suspended: int) -> int:
    return sum(entry.bytes_left for entry in restricted_to(queue, ~suspended))
