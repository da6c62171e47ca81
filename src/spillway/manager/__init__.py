"""The driver's part: the sequence of an epoch, its decisions, its orders and its commit.

Contract: nothing that an executor did counts before the manifest says so; every decision is a function of
committed state, reports, and the clock and budgets that are given. Start with `engine`; then `controller`
(decisions), `ordering` (orders), `commit` and `delivery`.
"""

from spillway.manager.budget import Budget, Budgets
from spillway.manager.checkpoint import IDENTITY, Checkpoint, Identity, stored_identity
from spillway.manager.cleanup import Cleaning, CleanupLimits
from spillway.manager.clock import Clock
from spillway.manager.config import Emulation, EngineConfig
from spillway.manager.delivery import ResultFile, StagedEpoch
from spillway.manager.engine import Engine
from spillway.manager.input_end import InputEnd
from spillway.manager.race_probe import require_one_winner
from spillway.manager.rotation import Swap, suspension
from spillway.manager.spill import Spill

__all__ = [
    "IDENTITY",
    "Budget",
    "Budgets",
    "Checkpoint",
    "Cleaning",
    "CleanupLimits",
    "Clock",
    "Emulation",
    "Engine",
    "EngineConfig",
    "Identity",
    "InputEnd",
    "ResultFile",
    "Spill",
    "StagedEpoch",
    "Swap",
    "require_one_winner",
    "stored_identity",
    "suspension",
]
