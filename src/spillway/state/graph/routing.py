"""Where the rows of the view's inputs go: to the operator that takes them in, at the processor of their
group, in the stage that runs the operator.

A target is a partition of a shuffle: those of the first stage come first, one per processor, then those of
the second, and so on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spillway.model import members
from spillway.state.graph.graph import Graph
from spillway.state.rows import Int64Array, flags
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN

Routed = tuple[int, int, pa.RecordBatch, int]
"""Target, operator, rows as the operator knows them, and how many of them count as arrived."""


@dataclass(frozen=True)
class Routing:
    graph: Graph
    placement: tuple[int, ...]
    """The processor of each group."""
    processors: int
    stages: tuple[tuple[int, ...], ...]
    """The levels of the graph that each stage runs."""

    def __reduce__(self) -> tuple[object, ...]:
        """Only the fields are sent to tasks, so that equal values are equal bytes."""
        return Routing, (self.graph, self.placement, self.processors, self.stages)

    def stage_of(self, operator: int) -> int:
        return self._stage_numbers[operator]

    def placement_of(self, operator: int) -> tuple[int, ...]:
        """The processor of each group of an operator."""
        first = self.graph.first_groups[operator]
        return self.placement[first : first + self.graph.operators[operator].groups]

    def operators_of(self, stage: int) -> list[int]:
        """The operators that a stage runs, those that feed others first."""
        levels = self.graph.levels
        mine = [number for number, level in enumerate(levels) if level in self.stages[stage]]
        return sorted(mine, key=lambda number: (levels[number], number))

    @property
    def targets(self) -> int:
        return len(self.stages) * self.processors

    @cached_property
    def operators_by_target(self) -> dict[int, list[int]]:
        """Per target, the operators that take in rows of the view's inputs there."""
        fed = {operator for operator, _ in self.graph.tags}
        return {
            stage * self.processors + processor: [op for op in self.operators_of(stage) if op in fed]
            for stage in range(len(self.stages))
            for processor in range(self.processors)
        }

    def feeds(self, stage: int) -> dict[int, list[int]]:
        """Later stages that get parcels of this one, and the operators there that get rows: those that its
        own operators feed, and the next stage, for which every processor has a message."""
        fed: dict[int, list[int]] = {} if stage + 1 == len(self.stages) else {stage + 1: []}
        for edge in self.graph.edges:
            if self.stage_of(edge.producer) == stage and (later := self.stage_of(edge.consumer)) != stage:
                operators = fed.setdefault(later, [])
                if edge.consumer not in operators:
                    operators.append(edge.consumer)
        return fed

    def targets_of(self, stage: int) -> dict[int, list[int]]:
        """Targets to which every task of a stage sends parcels, and the operators that get rows there."""
        return {
            later * self.processors + processor: operators
            for later, operators in self.feeds(stage).items()
            for processor in range(self.processors)
        }

    def split(self, batch: pa.RecordBatch) -> Iterator[Routed]:
        """The rows of one batch on the wire, by operator and target."""
        if not batch.num_rows:
            return
        tags = batch.column(TAG_COLUMN).to_numpy()
        hashes = batch.column(HASH_WIRE_COLUMN).to_numpy()
        groups = self.graph.group_numbers(tags, hashes)
        if self.graph.is_one and self.processors == 1:
            yield 0, 0, batch, batch.num_rows
            return
        homes = self._homes[groups]
        counted = self._arrived(tags, groups)
        first = int(homes[0])
        if bool((homes == first).all()):
            yield self._routed(first, batch, tags, counted)
            return
        order = np.argsort(homes, kind="stable")  # a radix sort: homes are 16-bit numbers
        moved = batch.take(pa.array(order))
        homes, tags = homes[order], tags[order]
        starts = [0, *(np.flatnonzero(homes[1:] != homes[:-1]) + 1).tolist(), len(homes)]
        for start, stop in pairwise(starts):
            own = None if counted is None else counted[order[start:stop]]
            yield self._routed(int(homes[start]), moved.slice(start, stop - start), tags[start:stop], own)

    def _routed(
        self, home: int, batch: pa.RecordBatch, tags: "np.typing.NDArray[np.int8]", counted: Int64Array | None
    ) -> Routed:
        operator, processor = divmod(home, self.processors)
        target = self._stage_numbers[operator] * self.processors + processor
        arrived = batch.num_rows if counted is None else int(counted.sum())
        if self.graph.is_one:
            return target, operator, batch, arrived
        wanted = self._columns[operator]
        columns = batch.select([name for name in batch.schema.names if name in wanted])
        numbers = pa.array(self._input_numbers[tags])
        place = columns.schema.get_field_index(TAG_COLUMN)
        return target, operator, columns.set_column(place, TAG_COLUMN, numbers), arrived

    def _arrived(self, tags: "np.typing.NDArray[np.int8]", groups: Int64Array) -> Int64Array | None:
        """Which rows count as arrived; None: all do. Of copies only the first ones do."""
        if self._counted is None:
            return None
        counted: Int64Array = self._counted[tags, groups - self._first_groups[tags]]
        return counted

    @cached_property
    def _homes(self) -> "np.typing.NDArray[np.uint16]":
        """Per group, its operator and its processor as one number."""
        sizes = self.graph.operator_groups
        operators = np.repeat(np.arange(len(sizes)), sizes)
        homes: np.typing.NDArray[np.uint16] = (operators * self.processors + np.array(self.placement)).astype(
            np.uint16
        )
        return homes

    @cached_property
    def _stage_numbers(self) -> Sequence[int]:
        stages = {level: stage for stage, levels in enumerate(self.stages) for level in levels}
        return [stages[level] for level in self.graph.levels]

    @cached_property
    def _input_numbers(self) -> "np.typing.NDArray[np.int8]":
        return np.array([number for _, number in self.graph.tags], dtype=np.int8)

    @cached_property
    def _counted(self) -> Int64Array | None:
        counted, most = self.graph.counted, max(self.graph.operator_groups)
        return None if counted is None else np.array([flags(mask, most) for mask in counted], np.int64)

    @cached_property
    def _first_groups(self) -> Int64Array:
        """Per tag, the first group of its operator."""
        return np.array([self.graph.first_groups[operator] for operator, _ in self.graph.tags])

    @cached_property
    def _columns(self) -> list[set[str]]:
        """Per operator, the columns of the wire that it reads."""
        return [
            {TAG_COLUMN, HASH_WIRE_COLUMN, *(slot for wire in operator.inputs for slot in wire.slots)}
            for operator in self.graph.operators
        ]


def fused_stages(graph: Graph, placement: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The levels of each stage: as long as all groups so far are on one processor, no row has to travel."""
    stages = [[0]]
    for level in range(1, max(graph.levels) + 1):
        below = [number for number, at in enumerate(graph.levels) if at <= level]
        owners = {placement[group] for number in below for group in members(graph.group_sets[number])}
        if len(owners) == 1:
            stages[-1].append(level)
        else:
            stages.append([level])
    return tuple(map(tuple, stages))
