"""Rows become wire rows: what is dropped, which keys are equal, and what an error says."""

import math
from dataclasses import replace

import pyarrow as pa
import pytest

from kit.scans import native_scan
from spillway.errors import EvaluationError
from spillway.scan import ScanInput
from spillway.scan.scan_input import normal_key
from spillway.state.rows import folded, xxhash64


def rows(scan: ScanInput, **columns: pa.Array) -> pa.RecordBatch:
    arrays = [columns[column.name] for column in scan.columns]
    return scan.wire_rows(arrays, len(arrays[0]))


JOIN = {"a": "k double, j string, x int", "b": "k double, j string"}


def test_rows_that_fail_the_filter_or_lack_a_key_are_dropped() -> None:
    scan = native_scan("SELECT a.x FROM a JOIN b ON a.k = b.k AND a.j = b.j WHERE a.x > 1", JOIN)
    made = rows(
        scan,
        k=pa.array([1.0, 2.0, None, 4.0, 5.0]),
        j=pa.array(["a", "b", "c", None, "e"]),
        x=pa.array([None, 2, 3, 4, 5], pa.int32()),
    )
    assert made["s0"].to_pylist() == [2, 5]
    assert made["s1"].to_pylist() == [2.0, 5.0]
    assert made["s2"].to_pylist() == ["b", "e"]
    assert made["t"].to_pylist() == [0, 0]
    assert made["t"].type == pa.int8()
    wanted = xxhash64([pa.array([2.0, 5.0]), pa.array(["b", "e"])])
    assert made["h"].to_pylist() == wanted.tolist()


def test_hashes_of_parts_are_folded_in_a_tree() -> None:
    sql = "SELECT a.x FROM a JOIN b ON a.k = b.k AND a.j = b.j"
    scan = replace(native_scan(sql, JOIN), hashed=((1,), (0,)))
    numbers, texts = pa.array([1.0, 2.0]), pa.array(["a", "b"])
    made = rows(scan, k=numbers, j=texts, x=pa.nulls(2, pa.int32()))
    assert made["h"].to_pylist() == folded([xxhash64([texts]), xxhash64([numbers])]).tolist()


def test_null_is_a_key_of_statistics() -> None:
    sql = (
        "SELECT x, count(*) OVER (PARTITION BY j ORDER BY ts, x "
        "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM a"
    )
    scan = native_scan(sql, {"a": "j string, x int, ts timestamp"}, "ts")
    made = rows(
        scan,
        j=pa.array([None, "a"]),
        x=pa.array([1, 2], pa.int32()),
        ts=pa.array([5, None], pa.timestamp("us", "UTC")),
    )
    assert made["h"].to_pylist() == [42, *xxhash64([pa.array(["a"])]).tolist()]
    assert made["s0"].to_pylist() == [5, None]
    assert made["s0"].type == pa.int64()


@pytest.mark.parametrize("type_", ["float", "double"])
def test_equal_numbers_have_one_bit_pattern(type_: str) -> None:
    kind = pa.float32() if type_ == "float" else pa.float64()
    width = kind.bit_width
    odd = (0x7FF << 52 | 7) if width == 64 else (0xFF << 23 | 7)
    bits = pa.array([odd, 0, 1 << (width - 2)], pa.int64() if width == 64 else pa.int32())
    values = pa.concat_arrays([bits.view(kind), pa.array([-0.0, None, math.nan], kind)])
    made = normal_key(values, type_)
    whole = made.view(bits.type).to_pylist()
    assert whole[0] == whole[5] == (0x7FF8 << 48 if width == 64 else 0x7FC00000)
    assert whole[1] == whole[3] == 0
    assert whole[2] == 1 << (width - 2)
    assert made.null_count == 1


def test_an_expression_that_fails_names_the_input() -> None:
    scan = native_scan("SELECT a.x + 1 AS n FROM a JOIN b ON a.k = b.k", JOIN)
    with pytest.raises(EvaluationError, match=r"^input a: arithmetic overflow in int; .* \(in x \+ 1\)$"):
        rows(scan, k=pa.array([1.0]), x=pa.array([2**31 - 1], pa.int32()))
    assert rows(scan, k=pa.nulls(1, pa.float64()), x=pa.array([2**31 - 1], pa.int32())).num_rows == 0
