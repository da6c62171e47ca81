"""Flux's hybrid (UCB/CSD-2-1205, 6.4): memory first, then load.

As long as any group has state on disk, memory is balanced; that is what delays results most. When all state
is in memory, load is balanced, and a group moves only to where it fits.
"""

from spillway.policy.placement.flux_load import FluxLoadParameters, balanced_load
from spillway.policy.placement.flux_memory import flux_memory
from spillway.policy.placement.snapshot import PlacementSnapshot
from spillway.policy.placement.suggestion import Suggestions


def flux_hybrid(snapshot: PlacementSnapshot, parameters: FluxLoadParameters) -> Suggestions:
    if any(group.on_disk for group in snapshot.groups):
        return flux_memory(snapshot, parameters)
    return balanced_load(
        snapshot, parameters, lambda group, receiver: group.resident_bytes <= receiver.room_bytes
    )
