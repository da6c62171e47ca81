"""The keywords of `Session.run` and `Session.compute`, for type checkers and editors.

They are the fields of the configs, and keys under the names that job files give them: `memory="64MB"` is
`memory_bytes=64 << 20`. A test keeps them equal to the declarations, which check the values.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from spillway.job.compute import COMPUTE, ComputeTable
from spillway.job.keys import from_keywords
from spillway.job.run import RUN, RunConfig
from spillway.policy import Distribution

if TYPE_CHECKING:
    from spillway.compute import ComputeConfig


class RunSettings(TypedDict, total=False):
    """Keys of `[run]`; the checkpoint is a parameter of its own."""

    processors: int
    groups: int
    memory: str | int | Sequence[str | int]
    memory_bytes: int | None
    memory_each: tuple[int, ...]
    until: str
    trigger: str | None
    latency: str
    cleanup_latency: str
    epoch_rows: int
    epoch_results: int
    results: str
    spill: str | None
    spill_share: float | None
    inactive_epochs: int
    history_weight: float
    state_share: float
    room_share: float
    restart_epochs: int
    rotation: bool
    rotation_gap: float | None
    rotation_turns: str
    rotation_backlog: str | int
    rotation_backlog_bytes: int | None
    adapt: str
    policy: Mapping[str, object]
    distribution: Distribution
    load_signal: str
    buffer: str | int
    buffer_bytes: int
    row_seconds: float
    speeds: tuple[float, ...]
    lineage_one_in: int
    tier: str | None


class ComputeSettings(TypedDict, total=False):
    """Keys of `[compute]`."""

    way: str
    tree: str
    memory: str | int
    memory_bytes: int | None
    processors: int | None
    sample: float | None
    rows: Mapping[str, float]
    selectivity: Mapping[str, float]


def run_config(checkpoint: str, given: Mapping[str, Any]) -> RunConfig:
    return RunConfig(checkpoint, **from_keywords(RunConfig, given, RUN, "run(...)"))


def compute_config(given: Mapping[str, Any]) -> "ComputeConfig":
    return ComputeTable(**from_keywords(ComputeTable, given, COMPUTE, "compute(...)")).config()
