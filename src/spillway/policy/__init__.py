"""What to spill and where to place state: pure functions of snapshots, by name.

Contract: a policy suggests; the manager decides. No policy keeps anything between calls. `spill` and
`placement` have one algorithm per file; `distribution` and `turns` are parameters, `epoch_size` says how much
input an epoch takes.
"""

from spillway.policy.distribution import BY_HASH, EVEN, Distribution, distributed, graph_placement
from spillway.policy.epoch_size import EpochSize, MeasuredEpoch, SizeLimits, first_size, next_size
from spillway.policy.turns import GROUP, SHARE, TURNS

__all__ = [
    "BY_HASH",
    "EVEN",
    "GROUP",
    "SHARE",
    "TURNS",
    "Distribution",
    "EpochSize",
    "MeasuredEpoch",
    "SizeLimits",
    "distributed",
    "first_size",
    "graph_placement",
    "next_size",
]
