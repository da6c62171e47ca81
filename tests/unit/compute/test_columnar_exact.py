"""Joins over columns against DuckDB, on random graphs: any integers as keys, nulls, skew, bags, cycles."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.compute import columnar
from spillway.compute.columnar import ColumnarJoin, ShareOfJoin, StoredRelation
from spillway.compute.cost import TreeCost
from spillway.compute.join_graph import JoinGraph, JoinKey, Relation
from spillway.compute.trees.choice import ALGORITHMS, propose

BITS = (8, 16, 32, 64)
TYPES = dict(zip(BITS, (pa.int8(), pa.int16(), pa.int32(), pa.int64()), strict=True))
Drawn = tuple[list[dict[int, pa.Array]], list[tuple[int, ...]]]


def key_values(bits: int) -> st.SearchStrategy[int | None]:
    """Few values, so that they meet; the bounds of the type, where differences overflow; nulls."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.integers(0, 2) | st.sampled_from([low, low + 1, -1, high - 1, high]) | st.none()


@st.composite
def drawn_joins(draw: st.DrawFn) -> Drawn:
    """Key columns of each relation, by key class; and the members of each class, a spanning tree at least."""
    count = draw(st.integers(2, 5))
    members = [{draw(st.integers(0, right - 1)), right} for right in range(1, count)]
    more = st.sets(st.integers(0, count - 1), min_size=2, max_size=3)
    members += draw(st.lists(more, max_size=2))
    sizes = [draw(st.sampled_from([0, 1, 4, 4, 9, 9, 9])) for _ in range(count)]
    columns: list[dict[int, pa.Array]] = [{} for _ in range(count)]
    for key, of in enumerate(members):
        for one in sorted(of):
            bits = draw(st.sampled_from(BITS))
            values = draw(st.lists(key_values(bits), min_size=sizes[one], max_size=sizes[one]))
            columns[one][key] = pa.array(values, TYPES[bits])
    return columns, [tuple(sorted(of)) for of in members]


def truth(tables: list[pa.Table], members: list[tuple[int, ...]]) -> list[tuple[object, ...]]:
    conditions = [
        f"t{one[0]}.k{key} = t{other}.k{key}" for key, one in enumerate(members) for other in one[1:]
    ]
    with duckdb.connect() as database:
        for number, table in enumerate(tables):
            database.register(f"t{number}", table)
        names = ", ".join(f"t{number}" for number in range(len(tables)))
        items = ", ".join(f"t{number}.id" for number in range(len(tables)))
        return sorted(
            database.sql(f"SELECT {items} FROM {names} WHERE {' AND '.join(conditions)}").fetchall()
        )


@settings(max_examples=settings().max_examples // 2)
@given(drawn_joins())
def test_every_tree_gives_duckdbs_rows(quick_directory: Callable[[], Path], drawn: Drawn) -> None:
    columns, members = drawn
    directory = quick_directory() / "k0=77"  # says nothing about the key k0 of the files
    directory.mkdir()
    tables, stored = [], []
    for number, own in enumerate(columns):
        rows = len(next(iter(own.values())))
        ids = pa.array([row // 2 for row in range(rows)], pa.int64())  # rows that occur twice
        table = pa.table({**{f"k{key}": values for key, values in own.items()}, "id": ids})
        tables.append(table)
        files = tuple(str(directory / f"{number}-{part}.parquet") for part in (0, 1))
        pq.write_table(table.slice(0, rows // 3), files[0])
        pq.write_table(table.slice(rows // 3), files[1])
        stored.append(
            StoredRelation(files, tuple((f"r{number}_{name}", name) for name in table.column_names))
        )
    graph = JoinGraph(
        tuple(Relation(f"t{number}", max(1.0, table.num_rows)) for number, table in enumerate(tables)),
        tuple(JoinKey(one, {(a, b): 0.3 for a in one for b in one if a < b}) for one in members),
    )
    keys = tuple({one: f"r{one}_k{key}" for one in of} for key, of in enumerate(members))
    outputs = tuple((number, f"r{number}_id") for number in range(len(tables)))
    wanted = truth(tables, members)
    trees = {made.tree for name in ALGORITHMS if (made := propose(TreeCost(graph), name)) is not None}
    for tree in trees:
        join = ColumnarJoin(graph, tree, tuple(stored), keys, outputs)
        for shares in (1, 3):
            found: list[tuple[object, ...]] = []
            for share in range(shares):
                for batch in ShareOfJoin(join, share, shares, lambda *_: None).batches():
                    found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
            assert sorted(found) == wanted


def test_long_texts_are_gathered_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One long text that meets many rows must not become one column of more than Arrow can hold."""
    monkeypatch.setattr(columnar, "MOST_BYTES", 1000)
    pq.write_table(pa.table({"k": [1, 2], "t": ["x" * 300, None]}), tmp_path / "a")
    pq.write_table(pa.table({"k": [1] * 10 + [2] * 5}), tmp_path / "b")
    stored = (
        StoredRelation((str(tmp_path / "a"),), (("a_k", "k"), ("a_t", "t"))),
        StoredRelation((str(tmp_path / "b"),), (("b_k", "k"),)),
    )
    graph = JoinGraph((Relation("a", 2.0), Relation("b", 15.0)), (JoinKey((0, 1), {(0, 1): 0.5}),))
    tree = next(made.tree for name in ALGORITHMS if (made := propose(TreeCost(graph), name)) is not None)
    join = ColumnarJoin(graph, tree, stored, ({0: "a_k", 1: "b_k"},), ((0, "a_t"), (1, "b_k")))
    batches = list(ShareOfJoin(join, 0, 1, lambda *_: None).batches())
    assert sum(one.num_rows for one in batches) == 15
    assert max(one.num_rows for one in batches) == 3
    assert sum(one.column(0).null_count for one in batches) == 5
