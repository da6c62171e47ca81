"""State in memory: images of runs in tmpfs, memory given back page by page, the allocator under a budget.

Contract: images are a cache; losing them changes no answer. Start with `tier`.
"""

from spillway.state.memory.allocator import bound_allocator, give_back
from spillway.state.memory.host_probe import HostAnswer, HostProbe
from spillway.state.memory.tier import MemoryTier, sibling_bytes
from spillway.state.memory.tier_directory import ROOM_BYTES, TierDirectory, choose_directory
from spillway.state.memory.tier_lock import holding_tier

__all__ = [
    "ROOM_BYTES",
    "HostAnswer",
    "HostProbe",
    "MemoryTier",
    "TierDirectory",
    "bound_allocator",
    "choose_directory",
    "give_back",
    "holding_tier",
    "sibling_bytes",
]
