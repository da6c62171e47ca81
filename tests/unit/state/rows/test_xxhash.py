"""The vectorised hash against XXH64 written out for one value, and against values that Spark printed."""

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import SourceError
from spillway.state.rows.xxhash import xxhash64

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip


def rotate(value: int, turn: int) -> int:
    return (value << turn | value >> (64 - turn)) & MASK


def lane(start: int, word: int) -> int:
    return rotate((start + word * P2) & MASK, 31) * P1 & MASK


def mixed(value: int) -> int:
    value = (value ^ value >> 33) * P2 & MASK
    value = (value ^ value >> 29) * P3 & MASK
    return value ^ value >> 32


def of_int(value: int, seed: int) -> int:
    start = (seed + P5 + 4 & MASK) ^ ((value & 0xFFFFFFFF) * P1 & MASK)
    return mixed(rotate(start, 23) * P2 + P3 & MASK)


def of_long(value: int, seed: int) -> int:
    start = (seed + P5 + 8 & MASK) ^ lane(0, value & MASK)
    return mixed(rotate(start, 27) * P1 + P4 & MASK)


def of_bytes(data: bytes, seed: int) -> int:
    """XXH64 as its specification has it."""
    at, end = 0, len(data)

    def number(width: int) -> int:
        return int.from_bytes(data[at : at + width], "little")

    if end < 32:
        value = seed + P5
    else:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while at + 32 <= end:
            for position in range(4):
                lanes[position] = lane(lanes[position], number(8))
                at += 8
        value = sum(rotate(part & MASK, turn) for part, turn in zip(lanes, (1, 7, 12, 18), strict=True))
        for part in lanes:
            value = ((value ^ lane(0, part)) * P1 + P4) & MASK
    value = value + end & MASK
    while at + 8 <= end:
        value = rotate(value ^ lane(0, number(8)), 27) * P1 + P4 & MASK
        at += 8
    if at + 4 <= end:
        value = rotate(value ^ (number(4) * P1 & MASK), 23) * P2 + P3 & MASK
        at += 4
    while at < end:
        value = rotate(value ^ (data[at] * P5 & MASK), 11) * P1 & MASK
        at += 1
    return mixed(value)


def of_float(value: float, seed: int) -> int:
    return of_int(struct.unpack("<i", struct.pack("<f", normal(value)))[0], seed)


def of_double(value: float, seed: int) -> int:
    return of_long(struct.unpack("<q", struct.pack("<d", normal(value)))[0], seed)


def normal(value: float) -> float:
    return math.nan if math.isnan(value) else value + 0.0


def of_wide(value: Decimal, seed: int) -> int:
    unscaled = int(value.scaleb(10, Context(prec=60)))
    return of_bytes(
        unscaled.to_bytes(
            ((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8) + 1, "big", signed=True
        ),
        seed,
    )


EPOCH = dt.date(1970, 1, 1)
WIDE = 10**37
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], Callable[[Any, int], int]]] = {
    "boolean": (pa.bool_(), st.booleans(), lambda value, seed: of_int(int(value), seed)),
    "tinyint": (pa.int8(), st.integers(-128, 127), of_int),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1), of_int),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1), of_int),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1), of_long),
    "float": (pa.float32(), st.floats(width=32), of_float),
    "double": (pa.float64(), st.floats(), of_double),
    "date": (pa.date32(), st.dates(), lambda value, seed: of_int((value - EPOCH).days, seed)),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        st.integers(-(2**62), 2**62),
        of_long,
    ),
    "timestamp_ntz": (pa.timestamp("us"), st.integers(-(2**62), 2**62), of_long),
    "decimal": (
        pa.decimal128(18, 2),
        st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-2)),
        lambda value, seed: of_long(int(value.scaleb(2, Context(prec=60))), seed),
    ),
    "wide decimal": (
        pa.decimal128(38, 10),
        (st.integers(-WIDE, WIDE) | st.integers(-(2**17), 2**17)).map(lambda n: Decimal(f"{n}e-10")),
        of_wide,
    ),
    "string": (
        pa.string(),
        st.text(max_size=100),
        lambda value, seed: of_bytes(value.encode(), seed),
    ),
    "binary": (pa.binary(), st.binary(max_size=140), of_bytes),
}


@given(st.data())
def test_the_hash_of_columns_is_that_of_their_values_one_after_the_other(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    rows = data.draw(st.integers(0, 12))
    cut = data.draw(st.integers(0, rows))
    values = [data.draw(st.lists(st.none() | KINDS[kind][1], min_size=rows, max_size=rows)) for kind in kinds]
    columns = [pa.array(column, KINDS[kind][0]) for kind, column in zip(kinds, values, strict=True)]
    wanted = []
    for row in range(cut, rows):
        seed = 42
        for kind, column in zip(kinds, values, strict=True):
            seed = seed if column[row] is None else KINDS[kind][2](column[row], seed)
        wanted.append(seed - (1 << 64) if seed >> 63 else seed)
    assert xxhash64([column.slice(cut) for column in columns]).tolist() == wanted


def test_wide_decimals_have_as_few_bytes_as_their_sign_allows() -> None:
    powers = [sign * (1 << bits) + more for bits in range(123) for sign in (1, -1) for more in (-1, 0, 1)]
    values = [Decimal(f"{power}e-10") for power in powers]
    wanted = np.array([of_wide(value, 42) for value in values], np.uint64).view(np.int64)
    assert xxhash64([pa.array(values, pa.decimal128(38, 10))]).tolist() == wanted.tolist()


@pytest.mark.parametrize("width", [32, 64])
def test_every_nan_is_the_same(width: int) -> None:
    quiet, exponent = (1 << 22, 0xFF << 23) if width == 32 else (1 << 51, 0x7FF << 52)
    bits = np.array([exponent | quiet, exponent | 7, exponent | quiet | 7, -1], f"<i{width // 8}")
    kind = pa.float32() if width == 32 else pa.float64()
    hashes = xxhash64([pa.array(bits).view(kind)])
    assert len(set(hashes.tolist())) == 1


@pytest.mark.parametrize("longest", [0, 7, 33, 500])
def test_more_rows_than_a_chunk_holds(longest: int) -> None:
    generator = np.random.default_rng(longest)
    values = [generator.bytes(size) for size in generator.integers(0, longest + 1, 40_000)]
    wanted = np.array([of_bytes(value, 42) for value in values], np.uint64).view(np.int64)
    assert (xxhash64([pa.array(values, pa.binary())]) == wanted).all()


def test_published_value() -> None:
    """The digest of nothing, from the specification of XXH64."""
    assert of_bytes(b"", 0) == 0xEF46DB3751D8E999


def test_a_type_without_a_hash_is_refused() -> None:
    with pytest.raises(SourceError, match="no hash for values of type uint8"):
        xxhash64([pa.array([1], pa.uint8())])
