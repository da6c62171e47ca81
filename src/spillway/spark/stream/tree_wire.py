"""Binds a tree of joins to Spark: one stream of wire rows, with the hashes that joins further up need."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField

from spillway.plan.operators import (
    Grid,
    KeyHash,
    KeyValue,
    Leaf,
    LeafColumn,
    Symbol,
    TreePlan,
    leaf_symbols,
)
from spillway.plan.typing import PlanTypes, leaf_types
from spillway.spark.stream.slots import assigned_slots, shared_slots, wired
from spillway.spark.stream.typed_input import TypedInput, normal_key
from spillway.state.binding import bind_tree, symbol_name
from spillway.state.graph import Graph
from spillway.state.rows import GROUP_SQL, folded_sql, hash_in_group_sql
from spillway.state.step import HASH_WIRE_COLUMN


def bind_tree_plan(
    plan: TreePlan, inputs: Sequence[TypedInput], types: PlanTypes, groups: int
) -> tuple[DataFrame, Graph, list[tuple[StructField, ...]]]:
    """The stream, the graph of joins, and the columns of each leaf in state."""
    keyed = [_leaf(plan, number, leaf, types, groups) for number, leaf in enumerate(inputs)]
    slots = shared_slots([fields for _, fields in keyed])
    assigned = [assigned_slots(fields, slots) for _, fields in keyed]
    stream = None
    for number, ((frame, fields), names) in enumerate(zip(keyed, assigned, strict=True)):
        rows = wired(frame, number, fields, names, slots)
        stream = rows if stream is None else stream.union(rows)
    assert stream is not None
    graph = bind_tree(plan, types.exact, leaf_types(types.inputs, types.keys), assigned, groups)
    return stream, graph, [fields for _, fields in keyed]


def _leaf(
    plan: TreePlan, number: int, leaf: TypedInput, types: PlanTypes, groups: int
) -> tuple[DataFrame, tuple[StructField, ...]]:
    """Rows that have all their keys, with the hash of their join's key and the columns that joins keep."""
    classes = plan.key_classes[number]
    keys = {key_class: f"k{position}" for position, key_class in enumerate(classes)}
    frame = leaf.frame.select(
        *(normal_key(name, types.keys[key_class]).alias(name) for key_class, name in keys.items()),
        *(field.name for field in leaf.columns),
    )
    for name in keys.values():
        frame = frame.where(F.col(name).isNotNull())
    own = next(join for join in plan.joins if Leaf(number) in join.children)
    hashes = [f"xxhash64({keys[key_class]})" for key_class in own.classes]
    symbols = leaf_symbols(plan, types.exact, number)
    columns = [_column(symbol, leaf, keys).alias(symbol_name(symbol)) for symbol in symbols]
    hashed = folded_sql(hashes)
    if plan.partition:
        frame, group = _copied(frame, Grid.of(plan.partition, groups), keys)
        hashed = hash_in_group_sql(group, groups, hashed)
    frame = frame.select(F.expr(hashed).alias(HASH_WIRE_COLUMN), *columns)
    fields = {field.name: field for field in frame.schema.fields}
    return frame, tuple(_field(symbol, fields[symbol_name(symbol)]) for symbol in symbols)


def _copied(frame: DataFrame, grid: Grid, keys: Mapping[int, str]) -> tuple[DataFrame, str]:
    """Each row once for each group that it belongs to, and that group as an expression."""
    parts = []
    for key_class, share, weight in zip(grid.classes, grid.shares, grid.weights, strict=True):
        if key_class in keys:
            coordinate = GROUP_SQL.format(hash=f"xxhash64({keys[key_class]})", groups=share)
            parts.append(f"{coordinate} * {weight}L")
        elif share > 1:
            offset = f"p{key_class}"
            offsets = F.expr(f"explode(sequence(0L, {(share - 1) * weight}L, {weight}L))")
            frame = frame.select("*", offsets.alias(offset))
            parts.append(offset)
    return frame, " + ".join(parts) or "0L"


def _column(symbol: Symbol, leaf: TypedInput, keys: Mapping[int, str]) -> Column:
    if isinstance(symbol, LeafColumn):
        return F.col(leaf.columns[symbol.column].name)
    assert isinstance(symbol, KeyHash | KeyValue)
    key = F.col(keys[symbol.key_class])
    return F.xxhash64(key) if isinstance(symbol, KeyHash) else key


def _field(symbol: Symbol, field: StructField) -> StructField:
    return StructField(field.name, LongType(), False) if isinstance(symbol, KeyHash) else field
