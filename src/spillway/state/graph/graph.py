"""Operators that feed each other, as one: groups and inputs are numbered consecutively across operators.

Each operator has its own number of groups, which follow those of the operators before it; so do its inputs.
The manager knows only these numbers: it places, moves, spills and cleans up groups of any operator alike.
Each operator's own step knows only its own; `translation` is between the two. A view with one operator is a
graph of one, whose numbers are its own.

Invariant: an operator comes after all that feed it, so a graph has no cycle.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spillway.errors import BUG, StateError
from spillway.model import GroupSet, Window, all_groups, union
from spillway.plan.expression import ColumnRef
from spillway.state.graph.edge import OperatorEdge, Root, Selection
from spillway.state.rows import CompactionLimits, Int64Array, Run, group_of
from spillway.state.step import Merges, Operator, WireInput

NO_WINDOW = Window(0, None, 0, derived=True)
"""Of an input without a window, in a graph with others: its rows never expire, and tell nothing of time."""


@dataclass(frozen=True)
class Graph:
    operators: tuple[Operator, ...]
    """Those that feed others before these."""
    tags: tuple[tuple[int, int], ...]
    """Per tag on the wire: the operator that takes its rows in, and as which input."""
    edges: tuple[OperatorEdge, ...] = ()
    roots: tuple[Root, ...] = ()
    counted: tuple[GroupSet, ...] | None = None
    """Per tag, the groups of its operator in which a row counts as arrived: it may have copies. None: no row
    has."""

    def __post_init__(self) -> None:
        for edge in self.edges:
            if not edge.producer < edge.consumer:
                raise StateError(f"operator {edge.producer} feeds operator {edge.consumer} before it; {BUG}")
        if self.waits and len(self.operators) > 1:
            raise StateError(f"an operator whose rows wait is not alone in its graph; {BUG}")
        for name in self.root_names:
            schemas = [self._schema_of(root) for root in self.roots if root.name == name]
            if any(schema != schemas[0] for schema in schemas):
                raise StateError(f"result {name!r} has rows with different columns; {BUG}")

    @classmethod
    def of_one(cls, operator: Operator) -> "Graph":
        tags = tuple((0, number) for number in range(len(operator.inputs)))
        return cls((operator,), tags, roots=(Root(0),))

    @cached_property
    def is_one(self) -> bool:
        """Whether the wire has the rows of one operator, whose results are those of the view as they are."""
        return len(self.operators) == 1 and self == Graph.of_one(self.operators[0])

    @cached_property
    def first_groups(self) -> tuple[int, ...]:
        """The number of each operator's first group."""
        return tuple(accumulate(self.operator_groups[:-1], initial=0))

    @property
    def operator_groups(self) -> tuple[int, ...]:
        """How many groups each operator has."""
        return tuple(operator.groups for operator in self.operators)

    @property
    def groups(self) -> int:
        return sum(self.operator_groups)

    @cached_property
    def first_inputs(self) -> tuple[int, ...]:
        """The number of each operator's first input."""
        return tuple(accumulate((len(operator.inputs) for operator in self.operators[:-1]), initial=0))

    @cached_property
    def inputs(self) -> tuple[WireInput, ...]:
        return tuple(wire for operator in self.operators for wire in operator.inputs)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """One per input, or none at all."""
        if not any(operator.windows for operator in self.operators):
            return ()
        none = (NO_WINDOW,)
        return tuple(
            window
            for operator in self.operators
            for window in operator.windows or none * len(operator.inputs)
        )

    @cached_property
    def root_names(self) -> tuple[str, ...]:
        """The results, in the order in which they first appear."""
        return tuple(dict.fromkeys(root.name for root in self.roots))

    def result_schema(self, name: str = "") -> pa.Schema:
        return next(self._schema_of(root) for root in self.roots if root.name == name)

    def with_result_schema(self, schema: pa.Schema, name: str = "") -> "Graph":
        """The graph with other types and names for the columns of a result."""
        operators, roots = list(self.operators), list(self.roots)
        for number, root in enumerate(roots):
            if root.name != name:
                continue
            if root.selection is not None:
                roots[number] = replace(root, selection=replace(root.selection, schema=schema))
            elif len(self._leaving(root.producer)) == 1:
                operators[root.producer] = operators[root.producer].with_result_schema(schema)
            else:
                columns = tuple(ColumnRef(0, place) for place in range(len(schema)))
                roots[number] = replace(root, selection=Selection(columns, schema))
        return replace(self, operators=tuple(operators), roots=tuple(roots))

    def is_final(self, number: int) -> bool:
        """Whether the results of an operator are those of the only view as they are, and go nowhere else."""
        return self._leaving(number) == [Root(number)]

    def _leaving(self, producer: int) -> list[OperatorEdge | Root]:
        """All that gets the results of an operator."""
        leaving: tuple[OperatorEdge | Root, ...] = (*self.edges, *self.roots)
        return [own for own in leaving if own.producer == producer]

    def _schema_of(self, root: Root) -> pa.Schema:
        if root.selection is not None:
            return root.selection.schema
        return self.operators[root.producer].result_schema

    @property
    def waits(self) -> bool:
        """Whether rows wait for the watermark."""
        return any(operator.wait_column is not None for operator in self.operators)

    @property
    def splittable(self) -> bool:
        return all(operator.splittable for operator in self.operators)

    @cached_property
    def group_sets(self) -> tuple[GroupSet, ...]:
        """The groups of each operator."""
        return tuple(
            all_groups(operator.groups) << first
            for operator, first in zip(self.operators, self.first_groups, strict=True)
        )

    @cached_property
    def group_heights(self) -> tuple[int, ...]:
        """Per group, how many operators are between it and the view's results."""
        each = zip(self.operators, self.heights, strict=True)
        return tuple(height for operator, height in each for _ in range(operator.groups))

    def extra_merges(self, runs: Sequence[Run], limits: CompactionLimits, merges: Merges) -> Merges:
        """What the operators want to merge of their own runs besides `merges`."""
        found: Merges = ()
        for operator, first in zip(self.operators, self.first_inputs, strict=True):
            mine = [run for run in runs if first <= run.input < first + len(operator.inputs)]
            found += operator.extra_merges(mine, limits, merges)
        return found

    def group_numbers(self, tags: NDArray[np.integer[Any]], hashes: Int64Array) -> Int64Array:
        """The group of each row on the wire."""
        takers = [number for number, _ in self.tags]
        sizes = {self.operators[number].groups for number in takers}
        first = np.array([self.first_groups[number] for number in takers])[tags]
        if len(sizes) == 1:
            groups: Int64Array = first + group_of(hashes, sizes.pop())
        else:
            each = np.array([self.operators[number].groups for number in takers])[tags]
            groups = first + group_of(hashes, each)
        return groups

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Per operator, one more than the highest of those that feed it."""
        levels = [0 for _ in self.operators]
        for edge in sorted(self.edges, key=lambda edge: edge.producer):
            levels[edge.consumer] = max(levels[edge.consumer], levels[edge.producer] + 1)
        return tuple(levels)

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """Per operator, how many operators are between it and the next result of a view."""
        final = {root.producer for root in self.roots}
        heights = [0 for _ in self.operators]
        for number in reversed(range(len(self.operators))):
            above = [heights[edge.consumer] + 1 for edge in self.edges if edge.producer == number]
            heights[number] = 0 if number in final else min(above, default=0)
        return tuple(heights)

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """Per operator, all that get rows because it has results."""
        above: list[frozenset[int]] = [frozenset() for _ in self.operators]
        for number in reversed(range(len(self.operators))):
            for edge in self.edges:
                if edge.producer == number:
                    above[number] |= above[edge.consumer] | {edge.consumer}
        return tuple(above)

    def operators_of(self, groups: GroupSet) -> tuple[int, ...]:
        """The operators that have some of these groups."""
        return tuple(number for number, own in enumerate(self.group_sets) if groups & own)

    def downstream(self, groups: GroupSet) -> GroupSet:
        """Groups that may still get rows from missing results of these."""
        return union(
            self.group_sets[up] for number in self.operators_of(groups) for up in self.ancestors[number]
        )
