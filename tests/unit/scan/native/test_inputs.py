"""Which inputs are read without Spark, and what becomes of their rows."""

import pickle
from dataclasses import replace

import pytest

from kit.scans import native_scan, native_scans
from spillway.model import View
from spillway.plan.expression import Call, ColumnRef, Literal
from spillway.scan import EventMicros, GroupCopies, ScanColumn, ScanInput, ScanKey, WireKey, WireKeyHash

SOURCES = {
    "a": "k long, j int, id long, x int, d double, f float, s string, ts timestamp, day date, n array<int>",
    "b": "k long, j int, id long, y decimal(10,2), s string",
    "c": "j int, id long, w double, s string",
}


def test_an_exact_key_is_hashed_and_not_kept() -> None:
    first, second = native_scans(
        "SELECT a.id, a.s, b.id AS i FROM a JOIN b ON a.k = b.k WHERE a.x > 3", SOURCES
    )
    assert first == ScanInput(
        name="a",
        tag=0,
        columns=(
            ScanColumn(0, "k", "bigint"),
            ScanColumn(2, "id", "bigint"),
            ScanColumn(3, "x", "int"),
            ScanColumn(6, "s", "string"),
        ),
        filter=Call(">", (ColumnRef(0, 3), Literal(3, "int"))),
        keys=(ScanKey(ColumnRef(0, 0), "bigint"),),
        hashed=((0,),),
        slots=(("s0", ColumnRef(0, 2)), ("s1", ColumnRef(0, 6))),
    )
    assert isinstance(second, ScanInput)
    assert (second.tag, [column.name for column in second.columns]) == (1, ["k", "id"])
    assert pickle.loads(pickle.dumps(first)) == first


def test_other_keys_are_kept_in_the_type_in_which_they_are_compared() -> None:
    scan = native_scan("SELECT a.id FROM a JOIN b ON a.s = b.s AND a.j = b.y", SOURCES)
    assert [key.type for key in scan.keys] == ["string", "decimal(12,2)"]
    assert scan.hashed == ((0, 1),)
    assert scan.slots == (("s0", ColumnRef(0, 2)), ("s1", WireKey(0)), ("s2", WireKey(1)))


def test_a_leaf_of_a_tree_has_a_hash_per_class() -> None:
    scans = native_scans("SELECT a.id, b.id AS i, c.w FROM a, b, c WHERE a.k = b.k AND b.s = c.s", SOURCES)
    middle = scans[1]
    assert isinstance(middle, ScanInput)
    assert len(middle.keys) == 2
    assert all(len(parts) == 1 for parts in middle.hashed)
    kept = [source for _, source in middle.slots]
    assert any(isinstance(source, WireKeyHash) for source in kept)
    assert any(isinstance(source, WireKey) for source in kept)
    assert not middle.null_keys


def test_statistics_keep_null_keys_and_have_them_after_the_kept_columns() -> None:
    sql = (
        "SELECT id, sum(x) OVER (PARTITION BY s, day ORDER BY ts RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING "
        "AND CURRENT ROW) AS total FROM a"
    )
    scan = native_scan(sql, SOURCES, "ts")
    assert scan.null_keys
    assert [type(source) for _, source in scan.slots] == [EventMicros, ColumnRef, WireKey, WireKey, ColumnRef]
    assert scan.hashed == ((0, 1),)


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
def test_event_times_of_windows_are_microseconds(type_: str) -> None:
    sources = dict.fromkeys("ab", f"k long, id long, ts {type_}")
    sql = "SELECT a.id, b.id AS j FROM a [RANGE 10 SECONDS] JOIN b ON a.k = b.k"
    scan = native_scan(sql, sources, "ts")
    assert EventMicros(ColumnRef(0, 2)) in [source for _, source in scan.slots]


@pytest.mark.parametrize(
    ("item", "condition", "reason"),
    [
        ("upper(a.s)", "true", "upper(s)"),
        ("a.n", "true", "n"),
        ("a.id", "CAST(a.d AS int) > 3", "INT"),
        ("CAST(a.d AS bigint)", "true", "BIGINT"),
        ("CAST(a.day AS string)", "true", "STRING"),
        ("CAST(a.d AS string)", "true", "STRING"),
        ("coalesce(a.x, length(lower(a.s)))", "true", "lower"),
    ],
)
def test_what_only_spark_evaluates_is_named(item: str, condition: str, reason: str) -> None:
    found = native_scans(f"SELECT {item} AS v, b.id FROM a JOIN b ON a.k = b.k WHERE {condition}", SOURCES)
    assert isinstance(found[0], str)
    assert found[0].startswith("only Spark evaluates")
    assert reason in found[0]
    assert isinstance(found[1], ScanInput)


def test_rows_are_copied_to_all_groups_that_they_may_meet() -> None:
    sql = "SELECT a.id, b.id AS i, c.w FROM a, b, c WHERE a.k = b.k AND b.s = c.s"
    first, middle, last = native_scans(replace(View.sql(sql), join_kind="multi-partition"), SOURCES)
    assert isinstance(first, ScanInput) and isinstance(middle, ScanInput) and isinstance(last, ScanInput)
    assert first.copies == GroupCopies(4, ((0, 2, 2),), (0, 1))
    assert middle.copies == GroupCopies(4, ((0, 2, 2), (1, 2, 1)), (0,))
    assert last.copies == GroupCopies(4, ((0, 2, 1),), (0, 2))
