"""A maintenance plan as a value: queries against one source each, and operations of the view manager.

Slots hold signed deltas. Slot i below n is the round's own delta of input i; every step writes new slots. The
sum of the result slots is the delta of the view: the telescoped sum of equation 9.4, whatever the strategy.
A query asks for the source as it is now; compensation then takes out what the wanted state does not contain:
always the changes after the round, and for a part `before` the round's own changes too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from spillway.maintain.graph import ViewGraph


@dataclass(frozen=True, slots=True)
class Part:
    """One delta of a query: `read` joined with the queried input gives `write`."""

    read: int
    write: int
    before: bool
    """Join with the state before the round, else with the state after it."""
    edges: tuple[int, ...]
    """The edges that the source evaluates; none means a Cartesian product."""
    local: tuple[int, ...] = ()
    """The edges that the view manager evaluates on the result."""


@dataclass(frozen=True, slots=True)
class MaintenanceQuery:
    """One maintenance query: all parts travel together, and the answer is split again after it."""

    input: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Take:
    """One row of a delta alone, for strategies that treat one update at a time."""

    read: int
    row: int
    write: int


@dataclass(frozen=True, slots=True)
class Union:
    """Deltas over the same inputs as one."""

    reads: tuple[int, ...]
    write: int


Step = MaintenanceQuery | Take | Union


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The steps in order; `covers[slot]` are the inputs that a slot's rows join."""

    strategy: str
    graph: ViewGraph
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    covers: tuple[tuple[int, ...], ...]

    @property
    def queries(self) -> tuple[MaintenanceQuery, ...]:
        return tuple(step for step in self.steps if isinstance(step, MaintenanceQuery))

    def products(self) -> frozenset[int]:
        """The inputs that some delta takes its Cartesian product with."""
        return frozenset(query.input for query in self.queries if any(not part.edges for part in query.parts))


@dataclass(slots=True)
class PlanBuilder:
    """Collects steps; the strategies describe what to send where, and this numbers the slots."""

    strategy: str
    graph: ViewGraph
    steps: list[Step] = field(default_factory=list)
    covers: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.covers = [(node,) for node in self.graph.nodes]

    def query(
        self,
        node: int,
        reads: Iterable[tuple[int, bool]],
        *,
        via: Collection[int] | None = None,
    ) -> list[int]:
        """Join the slots `reads` (slot, before) with `node`; the new slots in the same order.

        The source evaluates the edges to the nodes of `via` (None: all that there are); what is left is
        evaluated here. Without any slot there is no query.
        """
        parts = []
        for slot, before in reads:
            edges = self.graph.edges_between(self.covers[slot], node)
            there = tuple(n for n in edges if via is None or self.graph.edges[n].other(node) in via)
            here = tuple(n for n in edges if n not in there)
            write = self._slot((*self.covers[slot], node))
            parts.append(Part(slot, write, before, there, here))
        if parts:
            self.steps.append(MaintenanceQuery(node, tuple(parts)))
        return [part.write for part in parts]

    def take(self, slot: int, row: int) -> int:
        write = self._slot(self.covers[slot])
        self.steps.append(Take(slot, row, write))
        return write

    def union(self, slots: list[int]) -> int:
        if len(slots) == 1:
            return slots[0]
        write = self._slot(self.covers[slots[0]])
        self.steps.append(Union(tuple(slots), write))
        return write

    def plan(self, results: Iterable[int]) -> MaintenancePlan:
        return MaintenancePlan(
            self.strategy, self.graph, tuple(self.steps), tuple(results), tuple(self.covers)
        )

    def _slot(self, covers: tuple[int, ...]) -> int:
        self.covers.append(tuple(sorted(covers)))
        return len(self.covers) - 1


RECOMPUTE = "recompute"
"""The strategy of loading all sources and replacing the stored view."""
