"""From a bound plan to scans: per input how tasks make its wire rows, or why they cannot.

The kind of a plan decides which key parts are hashed and which columns are state, exactly as
`spark/stream/wire.py` and `tree_wire.py` do; the slots are those of the bound graph. Known limit: state
columns of nested types are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import pyarrow as pa

from spillway.model import Column
from spillway.plan.expression import ColumnRef, Expression, arrow_type, references, spark_type
from spillway.plan.operators import (
    AggregatePlan,
    Grid,
    InputPlan,
    JoinPlan,
    KeyHash,
    KeyValue,
    Leaf,
    LeafColumn,
    Symbol,
    TreePlan,
    leaf_symbols,
)
from spillway.plan.rules import Plan, read_source_expression
from spillway.plan.sql import display
from spillway.plan.typing import InputTypes, PlanTypes
from spillway.scan import (
    EventMicros,
    GroupCopies,
    ScanColumn,
    ScanInput,
    ScanKey,
    SlotSource,
    WireKey,
    WireKeyHash,
)
from spillway.scan.native.event_time import event_column
from spillway.scan.native.positive_list import is_evaluated_alike
from spillway.state.graph import Graph


def native_inputs(
    plan: Plan, columns: Sequence[tuple[Column, ...]], types: PlanTypes, graph: Graph
) -> tuple[ScanInput | str, ...]:
    """Per input its scan, or why only Spark can read it; `columns` are those of each input's source."""
    return tuple(_native(plan, number, columns[number], types, graph) for number in range(len(plan.inputs)))


class _LeftToSparkError(Exception):
    """Only Spark can read an input; the text says why."""


def _native(
    plan: Plan, number: int, columns: tuple[Column, ...], types: PlanTypes, graph: Graph
) -> ScanInput | str:
    reader = _Reader(plan.inputs[number], columns, types.inputs[number])
    try:
        layout = _LAYOUTS[plan.kind](plan, number, types, graph)
        keys = tuple(ScanKey(reader.key(part), types.keys[key]) for part, key in enumerate(layout.key_types))
        sources = [reader.column(symbol) if isinstance(symbol, int) else symbol for symbol in layout.slots]
        condition = reader.filter()
    except _LeftToSparkError as reason:
        return str(reason)
    operator, position = graph.tags[number]
    slots = graph.operators[operator].inputs[position].slots
    return ScanInput(
        name=plan.inputs[number].name,
        tag=number,
        columns=reader.read,
        filter=condition,
        keys=keys,
        hashed=layout.hashed,
        slots=tuple(zip(slots, sources, strict=True)),
        null_keys=layout.null_keys,
        copies=layout.copies,
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """What a kind of plan makes of an input."""

    key_types: Sequence[int]
    """Per part of the key, the place of its type among the types of keys."""
    hashed: tuple[tuple[int, ...], ...]
    slots: Sequence[int | WireKey | WireKeyHash]
    """Numbers are columns of the input."""
    null_keys: bool = False
    copies: GroupCopies | None = None


def _join(plan: JoinPlan, number: int, types: PlanTypes, _graph: Graph) -> _Layout:
    parts = range(len(types.keys))
    kept = () if types.exact[0] else tuple(WireKey(part) for part in parts)
    return _Layout(parts, (tuple(parts),), (*range(len(plan.inputs[number].columns)), *kept))


def _aggregate(plan: AggregatePlan, _number: int, types: PlanTypes, _graph: Graph) -> _Layout:
    parts = range(len(types.keys))
    columns = range(len(plan.input.columns))
    kept = tuple(WireKey(part) for part in parts)
    slots = (*columns[: plan.kept], *kept, *columns[plan.kept :])
    return _Layout(parts, (tuple(parts),), slots, null_keys=True)


def _tree(plan: TreePlan, number: int, types: PlanTypes, graph: Graph) -> _Layout:
    classes = plan.key_classes[number]
    own = next(join for join in plan.joins if Leaf(number) in join.children)
    hashed = tuple((classes.index(key_class),) for key_class in own.classes)
    symbols = leaf_symbols(plan, types.exact, number)
    copies = _copies(Grid.of(plan.partition, graph.operators[-1].groups), classes) if plan.partition else None
    return _Layout(classes, hashed, [_tree_slot(symbol, classes) for symbol in symbols], copies=copies)


def _copies(grid: Grid, classes: Sequence[int]) -> GroupCopies:
    coordinates, offsets = [], [0]
    for key_class, share, weight in zip(grid.classes, grid.shares, grid.weights, strict=True):
        if key_class in classes:
            coordinates.append((classes.index(key_class), share, weight))
        else:
            offsets = [offset + step * weight for offset in offsets for step in range(share)]
    return GroupCopies(prod(grid.shares), tuple(coordinates), tuple(offsets))


def _tree_slot(symbol: Symbol, classes: Sequence[int]) -> int | WireKey | WireKeyHash:
    if isinstance(symbol, LeafColumn):
        return symbol.column
    assert isinstance(symbol, KeyHash | KeyValue)
    part = classes.index(symbol.key_class)
    return WireKeyHash(part) if isinstance(symbol, KeyHash) else WireKey(part)


_LAYOUTS: Mapping[str, Callable[..., _Layout]] = MappingProxyType(
    {JoinPlan.kind: _join, AggregatePlan.kind: _aggregate, TreePlan.kind: _tree}
)


class _Reader:
    """Reads the expressions of one input, and notes which columns of the source they need."""

    def __init__(self, input_: InputPlan, columns: tuple[Column, ...], types: InputTypes) -> None:
        self._input = input_
        self._columns = columns
        self._types = types
        self._needed: set[int] = set()

    @property
    def read(self) -> tuple[ScanColumn, ...]:
        return tuple(
            ScanColumn(number, self._columns[number].name, self._columns[number].type)
            for number in sorted(self._needed)
        )

    def filter(self) -> Expression | None:
        sql = self._input.filter
        return None if sql is None else self._value(sql, pa.bool_())

    def key(self, part: int) -> Expression:
        return self._value(self._input.keys[part], arrow_type(self._types.keys[part]))

    def column(self, number: int) -> SlotSource:
        sql = self._input.columns[number].expression
        if (event := event_column(sql)) is not None:
            name, type_ = event
            return EventMicros(self._value(name, arrow_type(type_)))
        return self._value(sql, self._types.columns[number].arrow)

    def _value(self, sql: str, wanted: pa.DataType | None) -> Expression:
        """The expression that `sql` is; it must have the type that Spark found for it."""
        try:
            found = read_source_expression(sql, self._columns)
            if found is None or not is_evaluated_alike(found.value, self._arrow):
                raise _LeftToSparkError(f"only Spark evaluates {display(sql)}")
        except pa.ArrowException:
            raise _LeftToSparkError(f"only Spark evaluates {display(sql)}") from None
        if found.type != wanted:
            kind = "another type" if wanted is None else spark_type(wanted)
            raise _LeftToSparkError(f"only Spark evaluates {display(sql)} as {kind}")
        self._needed |= {ref.column for ref in references(found.value)}
        return found.value

    def _arrow(self, ref: ColumnRef) -> pa.DataType:
        return arrow_type(self._columns[ref.column].type)
