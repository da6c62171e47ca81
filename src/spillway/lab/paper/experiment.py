"""What an experiment of the dissertation is here: a workload, and variants of how it is run.

The original runs take most of an hour: one row per 30 ms and stream, spills above 200 MB. Here the same rows
arrive as fast as they are processed, with less memory, because a row takes less. Time is arrival time, except
in figures about costs, which use the clock. `quick` keeps the proportions (ranges per run, share of the state
that fits) and takes fewer, wider rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from spillway.errors import JobError
from spillway.lab.engines import STREAMS
from spillway.policy import EVEN, Distribution
from spillway.policy.placement import NO_PLACEMENT
from spillway.workload import Workload, parse_options

T = TypeVar("T")
ROW_SECONDS = 0.03
PARTITIONS = 300
LEAST, MOST, ALL_MEMORY = "push-30% | less-productive", "push-30% | more-productive", "All-Mem"


class Axis(StrEnum):
    """What a figure shows over time."""

    RESULTS = "results"
    RESULTS_BY_CLOCK = "results by the clock"
    MEMORY = "memory"
    MEMORY_EACH = "memory of each processor"


def experiment_of(name: str, known: Mapping[str, T]) -> T:
    """The experiment of a figure, from those of its family."""
    if name not in known:
        raise JobError(f"there is no figure {name}; known figures: {', '.join(known)}")
    return known[name]


@dataclass(frozen=True, slots=True)
class Variant:
    """One line of a figure."""

    label: str
    spill: str = "least-productive"
    spill_share: float = 0.3
    has_budget: bool = True
    adapt: str = NO_PLACEMENT
    policy: Mapping[str, float] = field(default_factory=dict)
    processors: int = 1
    distribution: Distribution = EVEN


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    title: str
    axis: Axis
    join_ratio: str
    variants: tuple[Variant, ...]
    rows: int = 100_000
    """Rows per stream."""
    tuple_range: int = 30_000
    width_bytes: int = 400
    epochs: int = 25
    memory_bytes: int = 48 << 20
    """Memory of each processor."""
    groups: int = PARTITIONS
    alternate: str | None = None
    """How arrivals alternate between the halves of the partitions, as an option of the workload."""
    row_seconds: float = ROW_SECONDS

    @property
    def rows_per_trigger(self) -> int:
        return -(-self.rows // self.epochs)

    def options(self, stream: str) -> dict[str, str]:
        """The options of one stream's source."""
        options = {
            "stream": stream,
            "rows": str(self.rows),
            "rowsPerTrigger": str(self.rows_per_trigger),
            "tupleRange": str(self.tuple_range),
            "joinRatio": self.join_ratio,
            "partitions": str(PARTITIONS),
            "width": str(self.width_bytes),
            "rate": str(1 / self.row_seconds),
        }
        return options if self.alternate is None else options | {"alternate": self.alternate}

    def workload(self) -> Workload:
        return replace(parse_options(self.options(STREAMS[0])).workload, streams=STREAMS)
