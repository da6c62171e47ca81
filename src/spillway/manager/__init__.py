"""The driver's part: the loop of epochs, what is ordered, spilled, rotated and cleaned up, and the commit.

Contract: nothing an executor did counts before the manifest says so; every decision is a function of
committed state and reports. Start with `engine`, then `controller`; `ordering` makes the orders.
"""

from spillway.manager.budget import MINIMUM_BYTES, Budget, Budgets
from spillway.manager.checkpoint import IDENTITY, Checkpoint, Identity
from spillway.manager.cleanup import Cleaning
from spillway.manager.clock import Clock
from spillway.manager.config import Emulation, EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.input_end import InputEnd
from spillway.manager.rotation import Swap, suspension
from spillway.manager.spill import Spill

__all__ = [
    "IDENTITY",
    "MINIMUM_BYTES",
    "Budget",
    "Budgets",
    "Checkpoint",
    "Cleaning",
    "Clock",
    "Emulation",
    "Engine",
    "EngineConfig",
    "Identity",
    "InputEnd",
    "Spill",
    "Swap",
    "suspension",
]
