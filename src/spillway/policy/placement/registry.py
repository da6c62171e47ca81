"""Placement policies by the names of job files, and their parameters from the table `[run.policy]`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Protocol

from spillway.errors import JobError
from spillway.model import parse_bytes
from spillway.policy.placement.active_disk import ActiveDiskParameters, active_disk
from spillway.policy.placement.diffusion import diffusion
from spillway.policy.placement.flux_hybrid import flux_hybrid
from spillway.policy.placement.flux_load import FluxLoadParameters, flux_load
from spillway.policy.placement.flux_memory import flux_memory
from spillway.policy.placement.lazy_disk import LazyDiskParameters, lazy_disk
from spillway.policy.placement.pairwise_memory import PairwiseParameters, pairwise_memory
from spillway.policy.placement.rounds import RoundParameters
from spillway.policy.placement.snapshot import PlacementSnapshot
from spillway.policy.placement.stay import StayParameters, stay
from spillway.policy.placement.suggestion import Suggestions


class PlacementParameters(Protocol):
    @property
    def minimum_span_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    """A policy with its parameters: a function of the snapshot alone."""

    name: str
    parameters: PlacementParameters
    function: Callable[[PlacementSnapshot, Any], Suggestions]

    def __call__(self, snapshot: PlacementSnapshot) -> Suggestions:
        return self.function(snapshot, self.parameters)


NO_PLACEMENT = "none"
PLACEMENT_POLICIES: Mapping[
    str, tuple[Callable[[PlacementSnapshot, Any], Suggestions], Callable[..., PlacementParameters]]
] = MappingProxyType(
    {
        NO_PLACEMENT: (stay, StayParameters),
        "pairwise-memory": (pairwise_memory, PairwiseParameters),
        "lazy-disk": (lazy_disk, LazyDiskParameters),
        "active-disk": (active_disk, ActiveDiskParameters),
        "flux-load": (flux_load, FluxLoadParameters),
        "flux-memory": (flux_memory, RoundParameters),
        "flux-hybrid": (flux_hybrid, FluxLoadParameters),
        "diffusion": (diffusion, PairwiseParameters),
    }
)


def placement_policy(name: str, settings: Mapping[str, object] | None = None) -> PlacementPolicy:
    """The policy of this name; `settings` replace defaults of its parameters."""
    if name not in PLACEMENT_POLICIES:
        raise JobError(f'[run] adapt = "{name}": must be one of {", ".join(PLACEMENT_POLICIES)}')
    function, make = PLACEMENT_POLICIES[name]
    defaults = make()
    known = {parameter.name: getattr(defaults, parameter.name) for parameter in fields(defaults)}  # type: ignore[arg-type]
    given = {}
    for key, value in (settings or {}).items():
        if key not in known:
            allowed = f"it has {', '.join(known)}" if known else "it has no parameters"
            raise JobError(f'[run.policy] {key}: no parameter of "{name}"; {allowed}')
        given[key] = _value(key, value)
    return PlacementPolicy(name, make(**given), function)


def _value(key: str, value: object) -> int | float:
    """A number; a size may also be written as in `memory`."""
    if key.endswith("_bytes") and isinstance(value, str):
        return parse_bytes(value, f"[run.policy] {key}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise JobError(f"[run.policy] {key} = {value!r}: must be a number")
    for unit in ("bytes", "rows"):
        if key.endswith(f"_{unit}") and not isinstance(value, int):
            raise JobError(f"[run.policy] {key} = {value!r}: must be a whole number of {unit}")
    if value != value or value in (float("inf"), float("-inf")):
        raise JobError(f"[run.policy] {key} = {value!r}: must be finite")
    return value
