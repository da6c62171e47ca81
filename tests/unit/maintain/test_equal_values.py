"""Values that a database takes for equal although they differ: letters under a collation, NaNs, zeros."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from kit.examples import tries
from spillway.job import Document
from spillway.maintain.maintenance import open_maintenance
from spillway.maintain.settings import MaintainJob
from spillway.maintain.sources import duckdb_capture

pytestmark = pytest.mark.slow

NANS = (0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000)
TEXT = "COLUMNS(*)::VARCHAR"
SHOWN = f"replace(CASE WHEN {TEXT} = '-0.0' THEN '0.0' ELSE {TEXT} END, '-nan', 'nan')"
"""As text: NaN equals NaN there. DuckDB shows the first of some equal values, a view always the same one."""
ROUNDS = "SELECT t.k AS k, t.x AS x FROM t JOIN u ON t.k = u.k"


def job_of(root: Path, kind: str, sql: str) -> MaintainJob:
    place = "lake" if kind == "delta" else "source.duckdb"
    document = {
        "view": {"sql": sql},
        "servers": {"s": {"kind": kind, "path": place}},
        "sources": {"t": {"server": "s"}, "u": {"server": "s"}},
        "maintain": {"store": "view.duckdb", "strategy": "batch"},
    }
    return Document(document, root).maintain_job()


def run(root: Path, *statements: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(root / "source.duckdb")) as source:
        for statement in statements:
            source.execute(statement)
        return source.fetchall()


def maintained(job: MaintainJob, shown: str = TEXT) -> list[tuple[Any, ...]]:
    """The result after a round, as text."""
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        maintenance.manager.round()
        assert maintenance.manager.verify() == 0
    with duckdb.connect(str(job.store), read_only=True) as store:
        return store.execute(f"SELECT {shown} FROM result ORDER BY ALL").fetchall()


@pytest.mark.parametrize("collation", ["nocase", "nocase.noaccent"])
def test_changes_that_a_collation_takes_for_none(tmp_path: Path, collation: str) -> None:
    run(
        tmp_path,
        f"CREATE TABLE t (k INT, x VARCHAR COLLATE {collation})",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE u AS SELECT unnest([1, 2]) AS k",
    )
    job = job_of(tmp_path, "duckdb", ROUNDS)
    assert maintained(job) == [("1", "a", "1"), ("2", "b", "1")]
    run(tmp_path, "UPDATE t SET x = 'A' WHERE k = 1", "UPDATE t SET x = 'á' WHERE k = 2")
    assert maintained(job) == [("1", "A", "1"), ("2", "á", "1")]


def test_a_log_that_is_summed_up_keeps_letters_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_capture, "_SLACK_ROWS", 0)
    run(
        tmp_path,
        "CREATE TABLE t (k INT, x VARCHAR COLLATE nocase)",
        "INSERT INTO t VALUES (1, 'a'), (1, 'A')",
        "CREATE TABLE u AS SELECT 1 AS k",
    )
    job = job_of(tmp_path, "duckdb", ROUNDS)
    for x, y in (("a", "b"), ("B", "b"), ("A", "B"), ("b", "b")):
        run(tmp_path, "DELETE FROM t", f"INSERT INTO t VALUES (1, '{x}'), (1, '{y}')")
        expected = {letter: str((x, y).count(letter)) for letter in (x, y)}
        assert maintained(job) == sorted(("1", letter, count) for letter, count in expected.items())


@tries(8, everyday=2)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["a", "A", "á", "b", None])), max_size=4),
        min_size=2,
        max_size=3,
    )
)
def test_random_texts_under_a_collation(
    tmp_path_factory: pytest.TempPathFactory, states: list[list[tuple[int, str | None]]]
) -> None:
    root = tmp_path_factory.mktemp("collation")
    run(
        root,
        "CREATE TABLE t (k INT, x VARCHAR COLLATE nocase.noaccent)",
        "CREATE TABLE u AS SELECT unnest([0, 1, 1]) AS k",
    )
    job = job_of(root, "duckdb", ROUNDS)
    for rows in states:
        values = ", ".join(f"({k}, {'NULL' if x is None else repr(x)})" for k, x in rows)
        run(root, "DELETE FROM t", f"INSERT INTO t VALUES {values}" if rows else "SELECT 1")
        expected: dict[tuple[str, str | None], int] = {}
        for k, x in rows:
            expected[str(k), x] = expected.get((str(k), x), 0) + 1 + k
        assert {row[:2]: int(row[2]) for row in maintained(job)} == expected


def doubles(*bits: int) -> pa.Array:
    return pa.array(np.array(bits, dtype=np.uint64).view(np.float64))


def write(root: Path, bits: list[int], mode: str) -> None:
    rows = pa.table({"k": pa.array([1] * len(bits), pa.int64()), "x": doubles(*bits)})
    write_deltalake(root / "lake" / "t", rows, mode=mode)


def test_nans_of_different_bits_are_one_value(tmp_path: Path) -> None:
    write(tmp_path, [NANS[0]], "append")
    write(tmp_path, [NANS[1]], "append")
    write_deltalake(tmp_path / "lake" / "u", pa.table({"k": [1]}))
    job = job_of(tmp_path, "delta", ROUNDS)
    assert maintained(job) == [("1", "nan", "2")]
    write(tmp_path, [NANS[2]], "append")
    assert maintained(job) == [("1", "nan", "3")]
    write(tmp_path, [NANS[1]], "overwrite")
    assert maintained(job) == [("1", "nan", "1")]


ZEROS = (0, 1 << 63)
ONE, INFINITY = 0x3FF0000000000000, 0x7FF0000000000000
STATES = st.lists(
    st.lists(st.sampled_from([*NANS, *ZEROS, ONE, INFINITY, INFINITY | 1 << 63]), min_size=1, max_size=4),
    min_size=2,
    max_size=3,
)


SQLS = [
    ROUNDS,
    "SELECT t.k AS k, t.x - t.x AS x FROM t JOIN u ON t.k = u.k",
    "SELECT t.x AS x, count(*) AS n, min(t.x) AS lo, sum(t.x) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.x",
    "SELECT t.x * -1 AS x, count(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY 1",
    "SELECT t.k AS k, sum(t.x) AS s, avg(t.x) AS a FROM t JOIN u ON t.k = u.k GROUP BY t.k",
]


@tries(4, everyday=2)
@given(st.sampled_from(["delta", "duckdb"]), st.sampled_from(SQLS), STATES)
def test_random_doubles(
    tmp_path_factory: pytest.TempPathFactory, kind: str, sql: str, states: list[list[int]]
) -> None:
    root = tmp_path_factory.mktemp("doubles")
    keys = pa.table({"k": pa.array([1, 1], pa.int64())})
    if kind == "delta":
        write_deltalake(root / "lake" / "u", keys)
    shown = SHOWN if "sum" in sql else TEXT
    for bits in states:
        rows = pa.table({"k": pa.array([1] * len(bits), pa.int64()), "x": doubles(*bits)})
        with duckdb.connect(str(root / "source.duckdb")) as source:
            source.register("rows", rows)
            source.register("keys", keys)
            source.execute("CREATE OR REPLACE TABLE t AS FROM rows; CREATE OR REPLACE TABLE u AS FROM keys")
        if kind == "delta":
            write(root, bits, "overwrite")
        counted = sql if "GROUP BY" in sql else f"SELECT *, count(*) AS n FROM ({sql}) GROUP BY ALL"
        expected = run(root, f"SELECT {SHOWN} FROM ({counted}) ORDER BY ALL")
        assert maintained(job_of(root, kind, sql), shown) == expected


@pytest.mark.parametrize(("stored", "wrong"), [("'-inf'", 1), ("'nan'", 1), ("7", 1), ("'inf'", 0)])
def test_verify_knows_infinite_sums(tmp_path: Path, stored: str, wrong: int) -> None:
    run(tmp_path, "CREATE TABLE u AS SELECT 1 AS k", "CREATE TABLE t AS SELECT 1 AS k, 'inf'::DOUBLE AS x")
    job = job_of(tmp_path, "duckdb", SQLS[-1])
    maintained(job)
    with duckdb.connect(str(job.store)) as store:
        store.execute(f"UPDATE group_rows SET s1 = {stored}")
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        assert maintenance.manager.verify() == wrong
