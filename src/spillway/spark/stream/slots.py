"""Slots of the wire: inputs have different columns, and share slots by type.

The n-th column of a type of every input lies in the n-th slot of that type, so the wire is as wide as the
widest input, not as all together.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField

from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN


def shared_slots(
    inputs: list[tuple[StructField, ...]],
) -> dict[str, tuple[DataType, int]]:
    """Per type, how many slots it needs; the order of the dictionary is the order of the slots."""
    slots: dict[str, tuple[DataType, int]] = {}
    for fields in inputs:
        counts: dict[str, int] = {}
        for field in fields:
            kind = field.dataType.json()
            counts[kind] = counts.get(kind, 0) + 1
            known = slots.get(kind, (field.dataType, 0))[1]
            slots[kind] = (field.dataType, max(known, counts[kind]))
    return slots


def assigned_slots(
    fields: tuple[StructField, ...], slots: Mapping[str, tuple[DataType, int]]
) -> tuple[str, ...]:
    order = list(slots)
    counts: dict[str, int] = {}
    names = []
    for field in fields:
        kind = field.dataType.json()
        names.append(f"s{order.index(kind)}_{counts.get(kind, 0)}")
        counts[kind] = counts.get(kind, 0) + 1
    return tuple(names)


def wired(
    frame: DataFrame,
    number: int,
    fields: tuple[StructField, ...],
    names: tuple[str, ...],
    slots: Mapping[str, tuple[DataType, int]],
) -> DataFrame:
    held = dict(zip(names, fields, strict=True))
    columns = []
    for kind, (data_type, count) in enumerate(slots.values()):
        for index in range(count):
            name = f"s{kind}_{index}"
            column = F.col(held[name].name) if name in held else F.lit(None).cast(data_type)
            columns.append(column.alias(name))
    return frame.select(F.lit(number).cast("tinyint").alias(TAG_COLUMN), HASH_WIRE_COLUMN, *columns)
