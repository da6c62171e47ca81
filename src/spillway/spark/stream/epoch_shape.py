"""How many frames go where in the Spark job of an epoch.

Spark pairs the frames of a stage's sides one by one (orders, rows of the batch, parcels of earlier stages).
So all sides of a partition have the same number: the largest that any side needs. The others are padded by
their first task.
"""

from dataclasses import dataclass

from spillway.state.graph import Quota, Routing


@dataclass(frozen=True, slots=True)
class EpochShape:
    routing: Routing
    parcel_bytes: int
    """A parcel is sealed when its rows take this much."""
    scan_parcels: int
    """Which every scan task sends to every target."""
    stage_parcels: int
    """Which every task of a stage sends to every target in later stages."""

    @property
    def key(self) -> tuple[object, ...]:
        """Rows that were scattered for a shape can be used by all with the same key."""
        routing = self.routing
        return (
            routing.placement,
            routing.processors,
            routing.stages,
            self.parcel_bytes,
            self.scan_parcels,
            self.stage_parcels,
        )

    def targets(self, stage: int) -> range:
        processors = self.routing.processors
        return range(stage * processors, (stage + 1) * processors)

    def senders(self, stage: int) -> list[int]:
        """Earlier stages that send parcels to this one."""
        return [earlier for earlier in range(stage) if stage in self.routing.feeds(earlier)]

    def frames(self, stage: int, scan_tasks: int, shipped: int = 0) -> int:
        """How many frames every partition of a stage gets from each side; the driver itself ships so many
        at most to one target."""
        sent = self.routing.processors * self.stage_parcels if stage else 0
        return max(1 + shipped, scan_tasks * self.scan_parcels, sent)

    def scan_quota(self, scan_tasks: int) -> Quota:
        """For the tasks that scatter the rows of the batch."""
        padding: dict[int, int] = {}
        for stage in range(len(self.routing.stages)):
            missing = self.frames(stage, scan_tasks) - scan_tasks * self.scan_parcels
            padding |= dict.fromkeys(self.targets(stage), missing)
        return Quota(self.scan_parcels, self.parcel_bytes, padding)

    def stage_quota(self, stage: int, scan_tasks: int, shipped: int) -> Quota:
        """For the tasks of a stage."""
        sent = self.routing.processors * self.stage_parcels
        padding: dict[int, int] = {}
        for later in self.routing.feeds(stage):
            missing = self.frames(later, scan_tasks, shipped) - sent
            padding |= dict.fromkeys(self.targets(later), missing)
        return Quota(self.stage_parcels, self.parcel_bytes, padding)
