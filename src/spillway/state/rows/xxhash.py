"""Spark's `xxhash64` over Arrow columns: the hash of a column is the seed of the next; null leaves the seed.

Numbers of at most 4 bytes are hashed as an int, those of 8 as a long, text and wide decimals by their bytes
(XXH64 by Yann Collet). All rows of a chunk go through each step together; chunks fit into the processor's
cache. Known limit: text takes a step of Python per 32 bytes of the longest value in a chunk, so values of
megabytes are slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import BUG, SourceError
from spillway.state.rows.group import BoolArray, Int64Array

UInt64Array = npt.NDArray[np.uint64]

_SEED = 42
_CHUNK_ROWS = 1 << 14
_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_STRIPE = 32
_LONG_DIGITS = 18
"""A decimal of so many digits fits into a long."""


def xxhash64(columns: Sequence[pa.Array]) -> Int64Array:
    """`xxhash64(c1, c2, ...)` of Spark, for each row. Columns have the Arrow types of Spark's types."""
    hashes = np.full(len(columns[0]), _SEED, np.uint64)
    for column in columns:
        hash_rows = _hasher(column)
        valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        for start in range(0, len(column), _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, len(column)))
            _store(hashes, rows, hash_rows(hashes[rows], rows), valid)
    return hashes.view(np.int64)


_Hasher = Callable[[UInt64Array, slice], UInt64Array]
"""From the seeds of some rows to their hashes."""


def _store(hashes: UInt64Array, rows: slice, made: UInt64Array, valid: BoolArray | None) -> None:
    if valid is None:
        hashes[rows] = made
    else:
        np.copyto(hashes[rows], made, where=valid[rows])


def _hasher(column: pa.Array) -> _Hasher:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _text_hasher(column)
    if pa.types.is_decimal128(kind):
        return _wide_hasher(column) if kind.precision > _LONG_DIGITS else _number_hasher(_low_words(column))
    if pa.types.is_boolean(kind):
        return _number_hasher(_fixed(pc.cast(column, pa.int8()), "<i1"))
    if pa.types.is_floating(kind) and kind.bit_width >= 32:
        return _number_hasher(_float_bits(_fixed(column, "<f4" if kind.bit_width == 32 else "<f8")))
    if pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or _is_micros(kind):
        return _number_hasher(_fixed(column, f"<i{kind.bit_width // 8}"))
    raise SourceError(f"no hash for values of type {kind}; {BUG}")


def _is_micros(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "us")


def _fixed(column: pa.Array, dtype: str) -> npt.NDArray[Any]:
    """The values without regard to nulls, whose places hold anything."""
    if not len(column):
        return np.zeros(0, dtype)
    values: npt.NDArray[Any] = np.frombuffer(column.buffers()[1], dtype)
    return values[column.offset : column.offset + len(column)]


def _decimal_words(column: pa.Array) -> UInt64Array:
    """Low and high word of each unscaled value."""
    if not len(column):
        return np.zeros((0, 2), np.uint64)
    words = np.frombuffer(column.buffers()[1], "<u8").reshape(-1, 2)
    return words[column.offset : column.offset + len(column)]


def _low_words(column: pa.Array) -> Int64Array:
    return np.ascontiguousarray(_decimal_words(column)[:, 0]).view(np.int64)


def _float_bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """As Java's `floatToIntBits`: one NaN; and as in Spark both zeroes are the positive one."""
    zero = values.dtype.type(0)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        positive = values + zero  # -0.0 + 0.0 is 0.0
    positive[np.isnan(positive)] = np.nan
    bits: npt.NDArray[Any] = positive.view(f"<i{values.dtype.itemsize}")
    return bits


def _number_hasher(values: npt.NDArray[Any]) -> _Hasher:
    if values.dtype.itemsize == 8:
        return lambda seeds, rows: _hash_longs(seeds, values[rows].view(np.uint64))
    return lambda seeds, rows: _hash_ints(seeds, values[rows].astype(np.int32).view(np.uint32))


def _hash_ints(seeds: UInt64Array, values: npt.NDArray[np.uint32]) -> UInt64Array:
    hashes = seeds + _constant(_P5 + 4)
    hashes ^= values * _constant(_P1)
    return _mixed(_turned(hashes, 23, _P2, _P3))


def _hash_longs(seeds: UInt64Array, values: UInt64Array) -> UInt64Array:
    hashes = seeds + _constant(_P5 + 8)
    hashes ^= _round(values)
    return _mixed(_turned(hashes, 27, _P1, _P4))


def _text_hasher(column: pa.Array) -> _Hasher:
    _, offset_buffer, data_buffer = column.buffers()
    if not len(column):
        return lambda seeds, _: seeds
    offsets = np.frombuffer(offset_buffer, "<i4")[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(b"" if data_buffer is None else data_buffer, np.uint8)

    def hash_rows(seeds: UInt64Array, rows: slice) -> UInt64Array:
        starts = offsets[rows].astype(np.int64)
        return _hash_bytes(seeds, data, starts, offsets[rows.start + 1 : rows.stop + 1] - starts)

    return hash_rows


def _wide_hasher(column: pa.Array) -> _Hasher:
    """By the bytes of `BigInteger.toByteArray`: big-endian, as few as hold the value and its sign."""
    words = _decimal_words(column)

    def hash_rows(seeds: UInt64Array, rows: slice) -> UInt64Array:
        some = np.ascontiguousarray(words[rows])
        high_first = some.view(np.uint8).reshape(-1, 16)[:, ::-1]
        data = np.ascontiguousarray(high_first)
        magnitude = data ^ (data[:, :1].view(np.int8) >> 7).view(np.uint8)
        first = np.where(magnitude.any(axis=1), (magnitude != 0).argmax(axis=1), 15).astype(np.int64)
        first -= magnitude[np.arange(len(first)), first] >> 7  # one more byte for the sign
        starts = np.arange(len(first), dtype=np.int64) * 16 + first
        return _hash_bytes(seeds, data.reshape(-1), starts, 16 - first)

    return hash_rows


def _hash_bytes(
    seeds: UInt64Array, data: npt.NDArray[np.uint8], starts: Int64Array, lengths: Int64Array
) -> UInt64Array:
    """XXH64 of `data[start : start + length]` for each row."""
    words = _unaligned(data, "<u8")
    hashes = seeds + _constant(_P5)
    stripes = lengths >> 5
    if stripes.any():
        long = np.flatnonzero(stripes)
        long = long[np.argsort(-stripes[long], kind="stable")]
        hashes[long] = _hash_stripes(seeds[long], words, starts[long], stripes[long])
    hashes += lengths.view(np.uint64)
    ends = starts + lengths
    _each(
        hashes, starts + (stripes << 5), (lengths & 31) >> 3, 8, lambda some, at: _add_word(some, words[at])
    )
    quads = _unaligned(data, "<u4")
    _each(hashes, ends - (lengths & 7), (lengths & 7) >> 2, 4, lambda some, at: _add_quad(some, quads[at]))
    _each(hashes, ends - (lengths & 3), lengths & 3, 1, lambda some, at: _add_byte(some, data[at]))
    return _mixed(hashes)


def _each(
    hashes: UInt64Array,
    positions: Int64Array,
    counts: Int64Array,
    width: int,
    add: Callable[[UInt64Array, Int64Array], UInt64Array],
) -> None:
    """Take `counts` parts of `width` bytes of each row into its hash."""
    for step in range(int(counts.max())):
        rows = np.flatnonzero(counts > step)
        if len(rows) == len(hashes):
            hashes[:] = add(hashes, positions + step * width)
        else:
            hashes[rows] = add(hashes[rows], positions[rows] + step * width)


def _hash_stripes(
    seeds: UInt64Array, words: UInt64Array, starts: Int64Array, stripes: Int64Array
) -> UInt64Array:
    """Rows with the most stripes of 32 bytes come first, so those that go on are always the first ones."""
    lanes = [seeds + _constant(start) for start in (_P1 + _P2, _P2, 0, -_P1)]
    for step in range(int(stripes[0])):
        going = int(np.searchsorted(-stripes, -step, side="left"))
        at = starts[:going] + step * _STRIPE
        for number, lane in enumerate(lanes):
            part = lane[:going]
            part += words[at + 8 * number] * _constant(_P2)
            part[:] = _rotated(part, 31) * _constant(_P1)
    hashes = _rotated(lanes[0], 1)
    for lane, turn in zip(lanes[1:], (7, 12, 18), strict=True):
        hashes += _rotated(lane, turn)
    for lane in lanes:
        hashes ^= _round(lane)
        hashes *= _constant(_P1)
        hashes += _constant(_P4)
    return hashes


def _add_word(hashes: UInt64Array, words: UInt64Array) -> UInt64Array:
    return _turned(hashes ^ _round(words), 27, _P1, _P4)


def _add_quad(hashes: UInt64Array, quads: npt.NDArray[np.uint32]) -> UInt64Array:
    return _turned(hashes ^ (quads * _constant(_P1)), 23, _P2, _P3)


def _add_byte(hashes: UInt64Array, values: npt.NDArray[np.uint8]) -> UInt64Array:
    return _turned(hashes ^ (values * _constant(_P5)), 11, _P1, 0)


def _unaligned(data: npt.NDArray[np.uint8], dtype: str) -> npt.NDArray[Any]:
    """The number that begins at each byte."""
    width = np.dtype(dtype).itemsize
    return np.ndarray((max(0, len(data) - width + 1),), dtype, data.data, strides=(1,))


def _round(values: UInt64Array) -> UInt64Array:
    """One word before it is taken into a hash."""
    made = _rotated(values * _constant(_P2), 31)
    made *= _constant(_P1)
    return made


def _turned(hashes: UInt64Array, turn: int, factor: int, summand: int) -> UInt64Array:
    made = _rotated(hashes, turn)
    made *= _constant(factor)
    made += _constant(summand)
    return made


def _rotated(values: UInt64Array, turn: int) -> UInt64Array:
    made = values << np.uint64(turn)
    made |= values >> np.uint64(64 - turn)
    return made


def _mixed(hashes: UInt64Array) -> UInt64Array:
    """The last step: every bit of the input reaches every bit of the hash."""
    hashes ^= hashes >> np.uint64(33)
    hashes *= _constant(_P2)
    hashes ^= hashes >> np.uint64(29)
    hashes *= _constant(_P3)
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _constant(value: int) -> np.uint64:
    return np.uint64(value & _MASK)
