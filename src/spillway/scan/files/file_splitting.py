"""From a file to its splits: one per row group that the filter does not exclude."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from spillway.plan.expression import ColumnRef
from spillway.scan import ARROW, PARQUET, ScanInput, Split, partition_value, path_partitions
from spillway.scan.files.arrow_shape import arrow_shape
from spillway.scan.files.parquet_shape import parquet_shape
from spillway.scan.files.pruning import Bounds, may_hold
from spillway.scan.files.shape import FileShape, GroupShape, LeftToSparkError

_Partitions = tuple[tuple[str, str | None], ...]


def file_splits(
    path: str,
    scan: ScanInput,
    *,
    root: str | None = None,
    partitions: _Partitions = (),
    format: Literal["parquet", "arrow"] = PARQUET,  # noqa: A002 - as sources call it
) -> tuple[Split, ...] | str:
    """The splits of a file for one input, or why Spark must read the file.

    Columns that the file does not hold itself are in the names of its directories below `root`, or are given
    as `partitions` by a table's log.
    """
    if "://" in path:
        return f"{path} is not on this machine"
    try:
        in_path = () if root is None else path_partitions(path, root)
        if in_path is None:
            return f"{path} has directories that only Spark reads"
        constant = (*partitions, *in_path)
        values = _constants(scan, constant)
        inside = [column for column in scan.columns if column.name.lower() not in values]
        shape = _SHAPES[format](path, inside)
    except LeftToSparkError as reason:
        return str(reason)
    return tuple(
        Split(scan.tag, path, format, (number,), group.rows, group.bytes, shape.bytes, constant)
        for number, group in enumerate(shape.groups)
        if group.rows and _is_needed(scan, shape, group, values)
    )


_SHAPES: Mapping[str, Callable[..., FileShape]] = MappingProxyType(
    {PARQUET: parquet_shape, ARROW: arrow_shape}
)


def _constants(scan: ScanInput, partitions: _Partitions) -> dict[str, object]:
    """The values of columns that are constant in the file, by name in lower case."""
    types = {column.name.lower(): column.type for column in scan.columns}
    try:
        return {
            name.lower(): partition_value(text, types[name.lower()])
            for name, text in partitions
            if name.lower() in types
        }
    except ValueError as reason:
        raise LeftToSparkError(str(reason)) from None


def _is_needed(scan: ScanInput, shape: FileShape, group: GroupShape, values: Mapping[str, object]) -> bool:
    if scan.filter is None:
        return True
    names = {column.number: column.name.lower() for column in scan.columns}

    def bounds(ref: ColumnRef) -> Bounds | None:
        name = names[ref.column]
        if name in shape.missing or (name in values and values[name] is None):
            return Bounds(nulls=group.rows)
        if name in values:
            value = values[name]
            return Bounds(value, value, 0) if isinstance(value, int | str) else Bounds(nulls=0)
        return group.bounds.get(name)

    return may_hold(scan.filter, bounds, group.rows)
