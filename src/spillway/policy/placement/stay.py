"""No relocation: groups stay where the initial distribution put them."""

from dataclasses import dataclass

from spillway.policy.placement.snapshot import PlacementSnapshot
from spillway.policy.placement.suggestion import NOTHING, Suggestions


@dataclass(frozen=True, slots=True)
class StayParameters:
    """Nothing to choose."""

    @property
    def minimum_span_seconds(self) -> float:
        return 0.0


def stay(_snapshot: PlacementSnapshot, _parameters: StayParameters) -> Suggestions:
    return NOTHING
