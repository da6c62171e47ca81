"""Joins over columns: every tree in every number of shares gives DuckDB's rows, and reports its joins."""

import time
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.compute import columnar
from spillway.compute.columnar import (
    ColumnarJoin,
    ColumnMemoryError,
    KeyTable,
    ShareOfJoin,
    StoredRelation,
    column_bytes,
)
from spillway.compute.cost import Machine, TreeCost
from spillway.compute.file_statistics import Footers, ParquetRelation
from spillway.compute.join_graph import JoinGraph, JoinKey, Relation
from spillway.compute.sketch import selectivity
from spillway.compute.tree import Segment
from spillway.compute.trees.choice import ALGORITHMS, choose, propose
from spillway.workload.multi_join import generate_query


def counted(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def truth(tables: dict[str, pa.Table], sql: str) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        return counted(database.sql(sql).to_arrow_table())


def run(join: ColumnarJoin, shares: int) -> tuple[Counter[tuple[object, ...]], Counter[tuple[int, int]]]:
    rows: Counter[tuple[object, ...]] = Counter()
    reported: Counter[tuple[int, int]] = Counter()

    def report(segment: int, step: int, count: int) -> None:
        reported[segment, step] += count

    for share in range(shares):
        one = ShareOfJoin(join, share, shares, report)
        for batch in one.batches():
            rows += counted(pa.table(batch))
        assert one.peak_bytes > 0
    return rows, reported


@pytest.mark.parametrize("most_rows", [7, 1 << 18])
@pytest.mark.parametrize("seed", range(3))
def test_every_tree_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, most_rows: int
) -> None:
    monkeypatch.setattr(columnar, "MOST_ROWS", most_rows)
    query = generate_query(5, seed, rows=(20, 200), result_rows=(100, 800), skew=0.5, null_share=0.1)
    tables = {one.name: query.table(index) for index, one in enumerate(query.relations)}
    for name, table in tables.items():
        pq.write_table(table.slice(0, 15), tmp_path / f"{name}-0.parquet")
        pq.write_table(table.slice(15), tmp_path / f"{name}-1.parquet")
    wanted = truth(tables, query.sql)
    assert wanted
    members = [
        tuple(n for n, one in enumerate(query.relations) if key in one.keys)
        for key in range(len(query.domains))
    ]
    shares = [
        JoinKey(one, {(a, b): 1 / query.domains[key] for a in one for b in one if a < b})
        for key, one in enumerate(members)
    ]
    graph = JoinGraph(tuple(Relation(one.name, float(one.rows)) for one in query.relations), tuple(shares))
    stored = tuple(
        StoredRelation(
            tuple(str(tmp_path / f"{one.name}-{part}.parquet") for part in (0, 1)),
            tuple((f"{one.name}_{name}", name) for name in tables[one.name].column_names),
        )
        for one in query.relations
    )
    keys = tuple({n: f"r{n}_k{key}" for n in one} for key, one in enumerate(members))
    outputs = tuple((n, f"r{n}_{name}") for n in range(5) for name in ("id", "p"))
    model = TreeCost(graph)
    for name in ALGORITHMS:
        made = propose(model, name)
        assert made is not None
        join = ColumnarJoin(graph, made.tree, stored, keys, outputs)
        for count in (1, 3):
            rows, reported = run(join, count)
            assert rows == wanted, name
            last = len(list(made.tree.segments())) - 1, len(made.tree.builds) - 1
            assert reported[last] == wanted.total()


def test_a_cycle_answers_all_of_its_keys(tmp_path: Path) -> None:
    tables = {
        "a": pa.table({"x": pa.array([1, 2, 2, None], pa.int32()), "z": [5, 6, None, 7]}),
        "b": pa.table({"x": [2, 1, 2, None], "y": [1, 2, 3, 4]}),
        "c": pa.table({"y": [1, 2, 3, 9], "z": [6, 5, 6, 7]}),
    }
    wanted = truth(tables, "SELECT a.x, b.y, c.z FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND a.z = c.z")
    assert wanted
    for name, table in tables.items():
        pq.write_table(table, tmp_path / name)
    stored = tuple(
        StoredRelation((str(tmp_path / name),), tuple((f"{name}{one}", one) for one in table.column_names))
        for name, table in tables.items()
    )
    pairs = ((0, 1), (1, 2), (0, 2))
    graph = JoinGraph(
        tuple(Relation(name, 4.0) for name in tables), tuple(JoinKey(one, {one: 0.5}) for one in pairs)
    )
    keys = ({0: "ax", 1: "bx"}, {1: "by", 2: "cy"}, {0: "az", 2: "cz"})
    join = ColumnarJoin(graph, Segment(0, (1, 2)), stored, keys, ((0, "ax"), (1, "by"), (2, "cz")))
    assert run(join, 2)[0] == wanted


@given(
    st.lists(st.integers(-5, 5) | st.integers(-(2**62), 2**62), max_size=30),
    st.lists(st.integers(-6, 6) | st.sampled_from([-(2**63), 2**63 - 1]), max_size=30),
)
def test_a_key_table_finds_what_is_equal(built: list[int], probing: list[int]) -> None:
    """Dense keys by address, others by search; keys far outside, too."""
    table = KeyTable(np.array(built, np.int64), None)
    first, count = table.find(np.array(probing, np.int64), None)
    which, found = table.expand(first, count)
    pairs = Counter(zip(which.tolist(), found.tolist(), strict=True))
    assert pairs == Counter(
        (n, m) for n, one in enumerate(probing) for m, other in enumerate(built) if one == other
    )


def planned(tmp_path: Path, relations: int, seed: int, rows: tuple[int, int]) -> ColumnarJoin:
    """A random query over files, with the best tree for its true sizes."""
    query = generate_query(relations, seed, rows=rows, result_rows=(1_000, 50_000))
    stored, keys = [], dict[str, dict[int, str]]()
    for index, one in enumerate(query.relations):
        table = query.table(index)
        pq.write_table(table, tmp_path / f"{one.name}.parquet")
        names = [name for name in table.column_names if name[0] == "k"]
        for name in names:
            keys.setdefault(name, {})[index] = f"r{index}_{name}"
        columns = tuple((f"r{index}_{name}", name) for name in table.column_names)
        stored.append(StoredRelation((str(tmp_path / f"{one.name}.parquet"),), columns))
    names = frozenset(name for own in keys.values() for name in own.values())
    with Footers([ParquetRelation(one.files, one.columns, names) for one in stored]) as footers:
        statistics = footers.statistics(60.0, time.perf_counter)
    classes = []
    for members in keys.values():
        pairs = {
            (a, b): selectivity(
                statistics[a].keys[members[a]],
                statistics[b].keys[members[b]],
                statistics[a].rows,
                statistics[b].rows,
            )
            for a in members
            for b in members
            if a < b
        }
        classes.append(JoinKey(tuple(sorted(members)), pairs))
    graph = JoinGraph(
        tuple(Relation(f"r{n}", s.rows, s.row_bytes) for n, s in enumerate(statistics)), tuple(classes)
    )
    tree = choose(TreeCost(graph, None, Machine(by_columns=True))).tree
    outputs = tuple((index, name) for index, one in enumerate(stored) for name, _ in one.columns[:1])
    return ColumnarJoin(graph, tree, tuple(stored), tuple(keys.values()), outputs)


@pytest.mark.parametrize("seed", range(4))
def test_what_a_task_holds_is_estimated_and_bounded(tmp_path: Path, seed: int) -> None:
    """The estimate is above what is measured, not far, and a lower limit ends the task."""
    join = planned(tmp_path, 4 + seed, seed, (1_000, 60_000))
    one = ShareOfJoin(join, 0, 1, lambda *_: None)
    rows = sum(batch.num_rows for batch in one.batches())
    assert rows > 0
    estimated = column_bytes(join.graph, join.tree, join.keys)
    assert one.peak_bytes <= estimated <= 4 * one.peak_bytes
    tracemalloc.start()
    again = ShareOfJoin(replace(join, limit_bytes=one.peak_bytes), 0, 1, lambda *_: None)
    assert sum(batch.num_rows for batch in again.batches()) == rows
    _, numpy_peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert numpy_peak <= one.peak_bytes * 1.5, "what numpy takes is counted"
    with pytest.raises(ColumnMemoryError):
        list(ShareOfJoin(replace(join, limit_bytes=one.peak_bytes - 1), 0, 1, lambda *_: None).batches())


def test_of_several_keys_the_most_selective_finds_the_pairs(tmp_path: Path) -> None:
    """A key with two values and one with many: pairs are looked up by the second."""
    size = 3_000
    for name in "ab":
        table = pa.table({"few": [n % 2 for n in range(size)], "many": list(range(size))})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    relations = tuple(
        StoredRelation((str(tmp_path / f"{name}.parquet"),), ((f"{name}f", "few"), (f"{name}m", "many")))
        for name in "ab"
    )
    classes = (JoinKey((0, 1), {(0, 1): 0.5}), JoinKey((0, 1), {(0, 1): 1 / size}))
    graph = JoinGraph((Relation("a", size), Relation("b", size)), classes)
    keys = ({0: "af", 1: "bf"}, {0: "am", 1: "bm"})
    join = ColumnarJoin(graph, Segment(0, (1,)), relations, keys, ((0, "am"),))
    one = ShareOfJoin(join, 0, 1, lambda *_: None)
    assert sum(batch.num_rows for batch in one.batches()) == size
    assert one.peak_bytes < 100 * size * 8, "half of all pairs would be 1,500 times as many"
    model = TreeCost(graph, None, Machine(by_columns=True))
    few = TreeCost(replace(graph, classes=(classes[0], classes[0])), None, Machine(by_columns=True))
    assert few.seconds(Segment(0, (1,))) > 3 * model.seconds(Segment(0, (1,)))
