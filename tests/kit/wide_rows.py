"""Payloads of about a given width, for runs that fill a budget: text, skewed text, decimals, nested."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

MIX = np.uint64(0x9E3779B97F4A7C15)
PAYLOADS = {
    "text": pa.string(),
    "skewed text": pa.string(),
    "decimals": pa.list_(pa.decimal128(38, 9)),
    "nested": pa.struct([("flag", pa.bool_()), ("parts", pa.map_(pa.string(), pa.list_(pa.int64())))]),
}
SQL_TYPES = {
    "text": "string",
    "skewed text": "string",
    "decimals": "array<decimal(38,9)>",
    "nested": "struct<flag:boolean,parts:map<string,array<bigint>>>",
}


def payload(kind: str, width: int, rows: int, chance: np.random.Generator) -> pa.Array:
    """Values of about this many bytes each; of skewed ones a few are very large."""
    sizes = np.full(64, max(1, width))
    if kind == "skewed text":
        sizes = np.where(np.arange(64) == 0, 6 * width, width)
    if kind == "decimals":
        values: list[Any] = [[Decimal(n)] * (int(size) // 16 + 1) for n, size in enumerate(sizes)]
    elif kind == "nested":
        values = [{"flag": True, "parts": [("key", [n] * (int(size) // 8))]} for n, size in enumerate(sizes)]
    else:
        values = [chance.bytes(int(size) // 2 + 1).hex() for size in sizes]
    return pa.array(values, PAYLOADS[kind]).take(pa.array(chance.integers(0, 64, rows)))


def hashed(keys: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (keys.astype(np.uint64) * MIX).view(np.int64)
