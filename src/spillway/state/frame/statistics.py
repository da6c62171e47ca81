"""Statistics over frames, vectorised: count, sum, avg, min, max, sample standard deviation.

A frame of n rows is put together from blocks of 1, 2, 4, ... rows, one for each bit of n; the blocks of one
size are made from neighbouring blocks of half that size. So every value is combined only with others of its
own frame, no sum is subtracted from another, and nothing cancels. Sums are pairwise; deviations are merged by
the formula of Chan, Golub and LeVeque. The cost is n log(frame) for n rows.
Sums of integers and decimals are exact: they are added in limbs of 32 bits.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.model import Frame, Statistic
from spillway.plan.expression import promote, spark_type, statistic_type
from spillway.state.frame.frames import OrderedRows, order_codes
from spillway.state.rows import BoolArray, Int64Array

Values = tuple[np.typing.NDArray[Any], ...]
Floats = np.typing.NDArray[np.float64]
Combine = Callable[[Values, Values], Values]
LIMB_BITS = 32
LIMBS = 4
LIMB = np.int64((1 << LIMB_BITS) - 1)
LARGEST = np.iinfo(np.int64).max


def statistics_of(
    statistics: Sequence[Statistic],
    columns: pa.RecordBatch,
    ordered: OrderedRows,
    at: Int64Array,
    labels: Sequence[str] = (),
) -> list[pa.Array]:
    """Each statistic for the rows at these places of the order; `labels` are the user's names for them."""
    bounds: dict[Frame, tuple[Int64Array, Int64Array]] = {}
    arguments: dict[int, pa.Array] = {}
    results = []
    for number, statistic in enumerate(statistics):
        if statistic.frame not in bounds:
            bounds[statistic.frame] = ordered.bounds(statistic.frame, at)
        starts, ends = bounds[statistic.frame]
        if statistic.argument is None:
            results.append(pa.array(ends - starts))
            continue
        if statistic.argument not in arguments:
            arguments[statistic.argument] = columns.column(statistic.argument).take(pa.array(ordered.rows))
        try:
            results.append(_statistic(statistic, arguments[statistic.argument], starts, ends))
        except ViewError as error:
            shown = labels[number] if labels else f"statistic {number + 1}"
            raise ViewError(f"{error} (in {shown})") from None
    return results


def _statistic(statistic: Statistic, values: pa.Array, starts: Int64Array, ends: Int64Array) -> pa.Array:
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    before = np.concatenate(([0], np.cumsum(valid)))
    counts = before[ends] - before[starts]
    if statistic.function == "count":
        return pa.array(counts)
    kind = statistic_type(statistic.function, values.type)
    if statistic.function in ("min", "max"):
        return _extreme(statistic.function, values, valid, starts, ends, counts == 0)
    if statistic.function == "stddev":
        return _deviation(values, valid, starts, ends)
    if pa.types.is_floating(values.type):
        (sums,) = fold((_numbers(values, valid),), _add, starts, ends)
    else:
        low, high = _exact_sums(values, valid, starts, ends)
        if statistic.function == "sum":
            return _whole(low, high, counts == 0, kind)
        sums = np.where(_fits(low, high), low.astype(np.float64), high * 2.0**64 + low.view(np.uint64))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = sums / counts if statistic.function == "avg" else sums
    return pa.array(found, mask=counts == 0)


def fold(values: Values, combine: Combine, starts: Int64Array, ends: Int64Array) -> Values:
    """All values from `starts` to `ends` combined, per frame; no frame is empty."""
    lengths, places = ends - starts, starts.copy()
    found: Values = tuple(np.zeros(len(starts), dtype=array.dtype) for array in values)
    begun = np.zeros(len(starts), dtype=np.bool_)
    blocks, size = values, 1
    for bit in range(int(lengths.max(initial=0)).bit_length()):
        if bit:
            blocks = combine(tuple(b[:-size] for b in blocks), tuple(b[size:] for b in blocks))
            size *= 2
        rows = np.flatnonzero(lengths >> bit & 1)
        block = tuple(array[places[rows]] for array in blocks)
        both = combine(tuple(array[rows] for array in found), block)
        known = begun[rows]
        for whole, sum_, alone in zip(found, both, block, strict=True):
            whole[rows] = np.where(known, sum_, alone)
        begun[rows] = True
        places[rows] += size
    return found


def _add(left: Values, right: Values) -> Values:
    with np.errstate(invalid="ignore", over="ignore"):
        return tuple(a + b for a, b in zip(left, right, strict=True))


def _numbers(values: pa.Array, valid: BoolArray) -> Floats:
    numbers = pc.fill_null(promote(values, pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    return np.where(valid, numbers, 0.0)


def _extreme(
    function: str,
    values: pa.Array,
    valid: BoolArray,
    starts: Int64Array,
    ends: Int64Array,
    empty: BoolArray,
) -> pa.Array:
    """The least or the greatest: of the codes of the values, and then what that code stands for."""
    smaller = function == "min"
    codes = np.where(valid, order_codes(values), LARGEST if smaller else -LARGEST - 1)
    combine = np.minimum if smaller else np.maximum
    (found,) = fold((codes,), lambda a, b: (combine(a[0], b[0]),), starts, ends)
    return _of_codes(found, codes, values, valid, empty)


def _of_codes(
    found: Int64Array, codes: Int64Array, values: pa.Array, valid: BoolArray, empty: BoolArray
) -> pa.Array:
    """The values that these codes stand for; null where there is none."""
    if pa.types.is_integer(values.type):
        return pa.array(np.where(empty, 0, found), mask=empty).cast(values.type)
    if pa.types.is_floating(values.type):
        numbers = (found ^ ((found >> 63) & LARGEST)).view(np.float64)
        return pa.array(np.where(empty, 0.0, numbers), mask=empty).cast(values.type, safe=False)
    if empty.all():
        return pa.nulls(len(found), values.type)
    there = np.flatnonzero(valid)
    places = np.zeros(int(codes[there].max()) + 1, dtype=np.int64)
    places[codes[there]] = there
    return values.take(pa.array(places[np.where(empty, 0, found)], mask=empty))


def _deviation(values: pa.Array, valid: BoolArray, starts: Int64Array, ends: Int64Array) -> pa.Array:
    nothing = np.zeros(len(values))
    moments = (valid.astype(np.float64), _numbers(values, valid), nothing, nothing)
    counts, _, _, squares = fold(moments, _merge_moments, starts, ends)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.sqrt(squares / (counts - 1))
    return pa.array(found, mask=counts < 2)


def _merge_moments(left: Values, right: Values) -> Values:
    """Count, first value, mean less the first value, and squared deviations of two sets together.

    Means are kept as distances from a value of their own set: they are small where the values differ little,
    however large the values are.
    """
    (count, first, mean, squares), (other, other_first, other_mean, other_squares) = left, right
    total = count + other
    with np.errstate(invalid="ignore", over="ignore"):
        gap = (other_first - first) + (other_mean - mean)
        share = other / np.maximum(total, 1)
        merged = mean + gap * share
        more = squares + other_squares + gap * gap * count * share
    # A side without values has no mean, so the other side's stands as it is.
    no_left, no_right = count == 0, other == 0
    return (
        total,
        np.where(no_left, other_first, first),
        np.where(no_left, other_mean, np.where(no_right, mean, merged)),
        np.where(no_left, other_squares, np.where(no_right, squares, more)),
    )


def _exact_sums(
    values: pa.Array, valid: BoolArray, starts: Int64Array, ends: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Sums as numbers of 128 bits: the lower half, and the upper half with the sign."""
    sums = list(fold(_limbs(values, valid), _add, starts, ends))
    carry = np.zeros(len(starts), dtype=np.int64)
    limbs = []
    for number in range(LIMBS):
        total = carry + sums[number] if number < len(sums) else carry
        limbs.append(total & LIMB)
        carry = total >> LIMB_BITS
    if (carry != -(limbs[-1] >> (LIMB_BITS - 1))).any():
        raise ViewError("a sum has more than 38 digits; cast the argument to a narrower decimal")
    return limbs[0] | limbs[1] << LIMB_BITS, limbs[2] | limbs[3] << LIMB_BITS


def _limbs(values: pa.Array, valid: BoolArray) -> Values:
    """Each value as limbs of 32 bits, the lowest first; the highest has the sign."""
    if pa.types.is_decimal(values.type):
        halves = np.frombuffer(values.buffers()[1], dtype=np.int64).reshape(-1, 2)
        halves = halves[values.offset : values.offset + len(values)]
        halves = np.where(valid[:, None], halves, 0)
        low, high = halves[:, 0], halves[:, 1]
        return low & LIMB, (low >> LIMB_BITS) & LIMB, high & LIMB, high >> LIMB_BITS
    whole = np.where(valid, order_codes(values), 0)
    return whole & LIMB, whole >> LIMB_BITS


def _fits(low: Int64Array, high: Int64Array) -> BoolArray:
    fits: BoolArray = high == low >> 63
    return fits


def _whole(low: Int64Array, high: Int64Array, empty: BoolArray, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal(kind):
        if not (_fits(low, high) | empty).all():
            raise ViewError("a sum of bigint overflows; cast the argument to decimal(38,0)")
        return pa.array(low, mask=empty)
    halves = np.ascontiguousarray(np.stack([low, high], axis=1))
    bits = pa.array(~empty).buffers()[1]
    array = pa.Array.from_buffers(kind, len(low), [bits, pa.py_buffer(halves)])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        shown = spark_type(kind)
        raise ViewError(f"a sum overflows {shown}; cast the argument to a narrower decimal") from None
    return array
