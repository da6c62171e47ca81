"""The spill policies by name, and the defaults of a run that names none."""

from collections.abc import Mapping
from types import MappingProxyType

from spillway.policy.spill.at_random import at_random
from spillway.policy.spill.bottom_up import bottom_up
from spillway.policy.spill.global_output import global_output
from spillway.policy.spill.global_output_cleanup import global_output_cleanup
from spillway.policy.spill.global_output_penalty import global_output_penalty
from spillway.policy.spill.global_output_penalty_paper import global_output_penalty_paper
from spillway.policy.spill.least_productive import least_productive
from spillway.policy.spill.least_recent import least_recent
from spillway.policy.spill.most_productive import most_productive
from spillway.policy.spill.recent_history import recent_history
from spillway.policy.spill.snapshot import SpillPolicy

NO_SPILL = "none"
SPILL_POLICIES: Mapping[str, SpillPolicy] = MappingProxyType(
    {
        "least-productive": least_productive,
        "most-productive": most_productive,
        "random": at_random,
        "least-recent": least_recent,
        "recent-history": recent_history,
        "bottom-up": bottom_up,
        "local-output": least_productive,
        "global-output": global_output,
        "global-output-penalty": global_output_penalty,
        "global-output-penalty-paper": global_output_penalty_paper,
        "global-output-cleanup": global_output_cleanup,
    }
)


def default_spill(*, tree: bool) -> str:
    """The policy of a run that names none."""
    return "global-output-penalty" if tree else "least-productive"


def default_ahead_share(spill_share: float | None, *, tree: bool) -> float:
    """How much room a spill makes for the next epoch, as a share of the memory for state."""
    return 0.0 if tree or spill_share is not None else 1 / 3


def default_spill_share(*, rotation: bool) -> float:
    """How much of a processor's state a spill frees at least, in a run that does not say.

    Smaller spills give more results at run time (figures 7.13, 7.16, 7.17). Still smaller ones give a little
    more, but each costs an epoch. A turn of rotation exchanges more: what comes back should stay for a while.
    """
    return 0.3 if rotation else 0.1
