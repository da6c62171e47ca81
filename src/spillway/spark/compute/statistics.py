"""Statistics of all relations in one Spark job: rows, row size, and a sketch of every key column.

A key is hashed in the type in which its class is compared, so that an int key meets a bigint key. `sample` is
the share of rows that is read. Distinct keys come from a bitmap of 64 bits per counter (linear counting).
Known limit: the bitmap is full at about five million distinct keys.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spillway.compute import BUCKETS, SLOT_BYTES, ComputeView, KeySketch, RelationStatistics
from spillway.plan.operators import common_key_type

_SIGN_BIT = 40
_BITS = 64
_WHOLE = -1
_SAMPLE_SEED = 17


def collect_statistics(
    view: ComputeView, relations: Sequence[DataFrame], *, sample: float = 1.0
) -> list[RelationStatistics]:
    """One pass over each relation, all in one job."""
    common = [_common_type(view, relations, number) for number in range(len(view.keys))]
    parts: list[DataFrame] = []
    for number, frame in enumerate(relations):
        seen = frame if sample >= 1.0 else frame.sample(fraction=sample, seed=_SAMPLE_SEED)
        entries = [F.struct(F.lit(_WHOLE).alias("key"), F.lit(0).cast("bigint").alias("hash"))]
        for key, view_key in enumerate(view.keys):
            for member, column in view_key.members:
                if member == number:
                    value = F.col(column).cast(common[key])
                    hashed = F.when(value.isNotNull(), F.xxhash64(value))
                    entries.append(F.struct(F.lit(key).alias("key"), hashed.alias("hash")))
        measured = _text_bytes(seen).alias("bytes"), F.spark_partition_id().alias("task")
        rows = seen.select(*measured, F.inline(F.array(*entries)))
        parts.append(rows.where("hash IS NOT NULL").select(F.lit(number).alias("relation"), "*"))
    bit = F.expr(f"shiftleft(1L, cast(pmod(shiftright(hash, 20), {_BITS}) AS int))")
    sign = F.when(F.expr(f"getbit(hash, {_SIGN_BIT})") == 1, 1).otherwise(-1)
    table = (
        reduce(DataFrame.union, parts)
        .groupBy("relation", "key", F.expr(f"cast(pmod(hash, {BUCKETS}) AS int)").alias("bucket"))
        .agg(
            F.sum(sign).alias("sum"),
            F.count(F.lit(1)).alias("rows"),
            F.bit_or(bit).alias("bits"),
            F.sum("bytes").alias("bytes"),
            F.min("task").alias("first_task"),
            F.max("task").alias("last_task"),
        )
        .toArrow()
    )
    return [
        _statistics(view, table, number, relations[number], 1 / sample) for number in range(len(relations))
    ]


def _common_type(view: ComputeView, relations: Sequence[DataFrame], key: int) -> str:
    terms = []
    for member, column in view.keys[key].members:
        read = next(found for found in view.relations[member].columns if found.name == column)
        kind = relations[member].schema[column].dataType.simpleString()
        terms.append((f"{view.relations[member].alias}.{read.expression.replace('`', '')}", kind))
    return common_key_type(terms)


def _text_bytes(frame: DataFrame) -> Column:
    """The bytes of a row beyond its slots."""
    varying = [
        F.coalesce(F.octet_length(name), F.lit(0))
        for name, kind in frame.dtypes
        if kind.startswith(("string", "binary", "varchar", "char"))
    ]
    return reduce(lambda a, b: a + b, varying, F.lit(0)).cast("bigint")


def _statistics(
    view: ComputeView, table: pa.Table, number: int, frame: DataFrame, scale: float
) -> RelationStatistics:
    own = table.filter(pc.equal(table["relation"], number))
    whole = own.filter(pc.equal(own["key"], _WHOLE))
    seen = int(pc.sum(whole["rows"]).as_py() or 0)
    text = int(pc.sum(whole["bytes"]).as_py() or 0)
    tasks = pc.max(whole["last_task"]).as_py() - pc.min(whole["first_task"]).as_py() + 1 if seen else 0
    keys = {
        column: _sketch(own.filter(pc.equal(own["key"], key)), scale)
        for key, view_key in enumerate(view.keys)
        for member, column in view_key.members
        if member == number
    }
    row_bytes = SLOT_BYTES * (len(frame.columns) + 1) + (text / seen if seen else 0.0)
    return RelationStatistics(round(seen * scale), row_bytes, keys, tasks)


def _sketch(part: pa.Table, scale: float) -> KeySketch:
    counters = np.zeros(BUCKETS, dtype=np.float64)
    counters[part["bucket"].to_numpy()] = part["sum"].to_numpy() * scale
    ones = int(np.bitwise_count(part["bits"].to_numpy().astype(np.int64).view(np.uint64)).sum())
    places = BUCKETS * _BITS
    distinct = -places * float(np.log(max(places - ones, 1) / places))
    rows = int(pc.sum(part["rows"]).as_py() or 0)
    return KeySketch(counters, round(rows * scale), distinct)
