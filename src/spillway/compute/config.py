"""What a user may ask of a computation: the `[compute]` table of a job, the arguments of `Session.compute`.

Invariant: a value that makes no sense is refused when the configuration is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.compute.trees import ALGORITHMS, CHOSEN
from spillway.errors import JobError

WAYS = AUTO, TREE, SPARK_PLAN = ("auto", "tree", "spark")


@dataclass(frozen=True, slots=True)
class ComputeConfig:
    way: str = AUTO
    """`auto`: the best tree if a clear gain is expected, else Spark's own plan; `tree`, `spark`: always."""
    tree: str = CHOSEN
    """A tree shape by name, or `chosen`: the best by cost."""
    memory_bytes: int | None = None
    """For hash tables; what does not fit is written and read back. None: the user set no limit."""
    processors: int | None = None
    """None: as many as Spark has cores."""
    sample: float | None = None
    """The share of rows that statistics read; None: as many as a small part of the expected time allows."""
    rows: Mapping[str, float] = field(default_factory=dict)
    """Given cardinalities, by alias."""
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """Given selectivities, by two aliases: "a b"."""

    @property
    def needs_tree(self) -> bool:
        """Whether one of our trees must run: Spark's own plan keeps neither a shape nor a memory limit."""
        return self.way == TREE or self.tree != CHOSEN or self.memory_bytes is not None

    def __post_init__(self) -> None:
        if self.tree not in (CHOSEN, *ALGORITHMS):
            raise JobError(
                f'[compute] tree = "{self.tree}": must be one of {", ".join((CHOSEN, *ALGORITHMS))}'
            )
        if self.way not in WAYS:
            raise JobError(f'[compute] way = "{self.way}": must be one of {", ".join(WAYS)}')
        if self.way == SPARK_PLAN and (self.memory_bytes is not None or self.tree != CHOSEN):
            raise JobError('[compute] way = "spark" is Spark\'s own plan: it takes no tree and no memory')
        if self.processors is not None and self.processors < 1:
            raise JobError(f"[compute] processors = {self.processors}: must be at least 1")
        if self.sample is not None and not 0 < self.sample <= 1:
            raise JobError(f"[compute] sample = {self.sample}: must be above 0 and at most 1")
        for name, value in (*self.rows.items(), *self.selectivity.items()):
            if value < 0:
                raise JobError(f"[compute] {name} = {value}: must not be negative")
        for name, value in self.selectivity.items():
            if value > 1:
                raise JobError(f"[compute.selectivity] {name} = {value}: must be at most 1")
