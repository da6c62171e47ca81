"""Binds a tree of joins to Spark: one stream of wire rows, with the hashes that joins further up need."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from spillway.plan.operators import (
    Grid,
    KeyHash,
    KeyValue,
    Leaf,
    LeafColumn,
    Symbol,
    TreePlan,
    common_key_type,
    hash_is_exact,
    leaf_symbols,
)
from spillway.spark.stream.slots import assigned_slots, shared_slots, wired
from spillway.spark.stream.typed_input import TypedInput, normal_key, typed_input
from spillway.state.binding import bind_tree, symbol_name
from spillway.state.graph import Graph
from spillway.state.rows import GROUP_SQL, folded_sql, hash_in_group_sql
from spillway.state.step import HASH_WIRE_COLUMN


def bind_tree_plan(
    plan: TreePlan, sources: Mapping[str, DataFrame], groups: int
) -> tuple[DataFrame, Graph, tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The stream, the operator, the Spark types of each leaf's columns, and those of the key classes."""
    typed = [typed_input(input_, sources[input_.source]) for input_ in plan.inputs]
    kinds = _class_types(plan, typed)
    exact = [
        not plan.partition and hash_is_exact([kinds[key_class] for key_class in join.classes])
        for join in plan.joins
    ]
    keyed = [_leaf(plan, number, leaf, kinds, exact, groups) for number, leaf in enumerate(typed)]
    slots = shared_slots([fields for _, fields in keyed])
    assigned = [assigned_slots(fields, slots) for _, fields in keyed]
    stream = None
    for number, ((frame, fields), names) in enumerate(zip(keyed, assigned, strict=True)):
        rows = wired(frame, number, fields, names, slots)
        stream = rows if stream is None else stream.union(rows)
    assert stream is not None
    arrow = [to_arrow_schema(StructType(list(fields)), timezone="UTC") for _, fields in keyed]

    def leaf_type(symbol: LeafColumn | KeyValue) -> pa.DataType:
        return arrow[symbol.leaf].field(symbol_name(symbol)).type

    operator = bind_tree(plan, exact, leaf_type, assigned, groups)
    types = tuple(tuple(field.dataType.simpleString() for field in fields) for _, fields in keyed)
    return stream, operator, types, kinds


def _class_types(plan: TreePlan, typed: list[TypedInput]) -> tuple[str, ...]:
    """The type in which each class of equal terms is compared."""
    found = []
    for key_class in range(len(plan.key_labels)):
        terms = []
        for number, classes in enumerate(plan.key_classes):
            if key_class in classes:
                position = classes.index(key_class)
                label = f"{plan.inputs[number].name}: {plan.inputs[number].keys[position].replace('`', '')}"
                terms.append((label, typed[number].keys[position].simpleString()))
        found.append(common_key_type(terms))
    return tuple(found)


def _leaf(
    plan: TreePlan, number: int, leaf: TypedInput, kinds: tuple[str, ...], exact: list[bool], groups: int
) -> tuple[DataFrame, tuple[StructField, ...]]:
    """Rows that have all their keys, with the hash of their join's key and the columns that joins keep."""
    classes = plan.key_classes[number]
    keys = {key_class: f"k{position}" for position, key_class in enumerate(classes)}
    frame = leaf.frame.select(
        *(normal_key(name, kinds[key_class]).alias(name) for key_class, name in keys.items()),
        *(field.name for field in leaf.columns),
    )
    for name in keys.values():
        frame = frame.where(F.col(name).isNotNull())
    own = next(join for join in plan.joins if Leaf(number) in join.children)
    hashes = [f"xxhash64({keys[key_class]})" for key_class in own.classes]
    symbols = leaf_symbols(plan, exact, number)
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
