"""A view keeps the tree of its checkpoint, whatever statistics say later."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.catalog.job_plan import plan_streams
from spillway.catalog.stream_plan import plan_stream_view
from spillway.job.sources import SourceSpec
from spillway.manager.checkpoint import Checkpoint, Identity, stored_identity
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.operators.tree import JoinNode, shape_text
from spillway.plan.rules import Plan, plan_view
from spillway.plan.rules.tree_choice import BY_KEYS, BY_SIZES, GIVEN, KEPT
from spillway.state.storage.storage import Storage
from spillway.workload import QUERIES

CHAIN = View.sql("SELECT a.id AS a, c.id AS c FROM a, b, c WHERE a.x = b.x AND b.y = c.y")
CATALOG = dict.fromkeys("abc", tuple(Column(name, "bigint") for name in ("id", "x", "y")))


def write(directory: Path, name: str, file: str, rows: int, keys: int) -> SourceSpec:
    (directory / name).mkdir(exist_ok=True)
    numbers = np.arange(rows)
    columns = {"id": numbers, "x": numbers % keys, "y": numbers % keys}
    pq.write_table(pa.table(columns), directory / name / f"{file}.parquet")
    return SourceSpec(name, "parquet", str(directory / name))


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, SourceSpec]:
    """`b` and `c` are small, so they come first."""
    return {
        "a": write(tmp_path, "a", "0", 5000, 10),
        "b": write(tmp_path, "b", "0", 100, 100),
        "c": write(tmp_path, "c", "0", 10, 10),
    }


def identity(plan: Plan) -> Identity:
    tree = None if plan.chosen_tree is None else json.dumps(plan.chosen_tree)
    return Identity(plan.fingerprint, plan.view, (), 4, tree=tree)


def shape(plan: Plan) -> str:
    return shape_text(plan.shape())  # type: ignore[union-attr]


def why(plan: Plan) -> str:
    assert plan.choice is not None  # type: ignore[union-attr]
    return plan.choice.why  # type: ignore[union-attr]


def test_statistics_choose_the_tree_of_a_new_checkpoint(
    tmp_path: Path, sources: dict[str, SourceSpec]
) -> None:
    plan = plan_stream_view(CHAIN, CATALOG, sources, str(tmp_path / "state"))
    assert (shape(plan), why(plan)) == ("(a (b c))", BY_SIZES)
    assert not (tmp_path / "state").exists()


def test_a_restart_takes_the_same_tree_though_statistics_have_changed(
    tmp_path: Path, sources: dict[str, SourceSpec]
) -> None:
    state = str(tmp_path / "state")
    first = plan_stream_view(CHAIN, CATALOG, sources, state)
    Checkpoint(state, identity(first)).close()
    write(tmp_path, "c", "1", 90_000, 10)
    write(tmp_path, "b", "1", 5000, 10)
    again = plan_stream_view(CHAIN, CATALOG, sources, state)
    assert shape(plan_stream_view(CHAIN, CATALOG, sources, str(tmp_path / "new"))) == "((a b) c)"
    assert (again, why(again)) == (first, KEPT)
    Checkpoint(state, identity(again)).close()
    explained, _ = plan_streams(CHAIN, sources, {}, state)
    assert explained.fingerprint == first.fingerprint


def test_a_checkpoint_without_a_tree_is_planned_without_statistics(
    tmp_path: Path, sources: dict[str, SourceSpec]
) -> None:
    """So were checkpoints of earlier versions, and those whose sources had no files."""
    state = str(tmp_path / "state")
    Checkpoint(state, identity(plan_view(CHAIN, CATALOG))).close()
    plan = plan_stream_view(CHAIN, CATALOG, sources, state)
    assert (shape(plan), why(plan)) == ("((a b) c)", f"{BY_KEYS}; no statistics")


def test_the_users_tree_wins(tmp_path: Path, sources: dict[str, SourceSpec]) -> None:
    state = str(tmp_path / "state")
    Checkpoint(state, identity(plan_stream_view(CHAIN, CATALOG, sources, state))).close()
    plan = plan_stream_view(CHAIN.with_tree(("a", "b"), "c"), CATALOG, sources, state)
    assert (shape(plan), why(plan)) == ("((a b) c)", GIVEN)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id AS a FROM a, b, c, a d WHERE a.x = b.x AND b.y = c.y AND c.x = d.x",
        "SELECT a.id AS a FROM a, b, c WHERE a.x = b.x AND a.y = c.y",
    ],
)
def test_a_kept_tree_that_another_view_cannot_have_is_left_out(
    tmp_path: Path, sources: dict[str, SourceSpec], sql: str
) -> None:
    """The checkpoint then refuses the view by its text."""
    state = str(tmp_path / "state")
    Checkpoint(state, identity(plan_stream_view(CHAIN, CATALOG, sources, state))).close()
    assert why(plan_stream_view(View.sql(sql), CATALOG, sources, state)).startswith(BY_KEYS)


def test_the_identity_is_stored_as_it_was_given(tmp_path: Path) -> None:
    places = (("a", "parquet", "/a"),)
    given = Identity("f00d", "SELECT 1", (("bigint",),), 8, places, "delta", '[["a", "b"], "c"]')
    storage = Storage(str(tmp_path))
    assert stored_identity(storage) is None
    Checkpoint(str(tmp_path), given).close()
    assert stored_identity(storage) == given
    Checkpoint(str(tmp_path), replace(given, tree=None)).close()
    assert stored_identity(storage) == given


def tpch_tables(directory: Path) -> dict[str, SourceSpec]:
    """The tables of Q9 with the ratios of TPC-H: four suppliers of a part, lines of what they supply."""
    rng = np.random.default_rng(1)
    parts, suppliers, orders, lines = 400, 20, 3000, 12_000
    numbers = np.arange(4 * parts)
    part, supplier = numbers % parts, (numbers % parts + numbers // parts * 5) % suppliers
    drawn = rng.integers(0, len(numbers), lines)
    tables: dict[str, dict[str, Any]] = {
        "part": {
            "p_partkey": np.arange(parts),
            "p_name": ["red" if number % 20 else "green" for number in range(parts)],
        },
        "supplier": {"s_suppkey": np.arange(suppliers), "s_nationkey": rng.integers(0, 25, suppliers)},
        "partsupp": {"ps_partkey": part, "ps_suppkey": supplier, "ps_supplycost": rng.random(len(numbers))},
        "lineitem": {
            "l_orderkey": np.sort(rng.integers(0, orders, lines)),
            "l_partkey": part[drawn],
            "l_suppkey": supplier[drawn],
            "l_extendedprice": rng.random(lines),
            "l_discount": rng.random(lines),
            "l_quantity": rng.random(lines),
        },
        "orders": {
            "o_orderkey": np.arange(orders),
            "o_orderdate": rng.integers(0, 2400, orders).astype("M8[D]"),
        },
        "nation": {"n_nationkey": np.arange(25), "n_name": [f"nation {n}" for n in range(25)]},
    }
    for name, columns in tables.items():
        (directory / name).mkdir()
        pq.write_table(pa.table(columns), directory / name / "0.parquet")
    return {name: SourceSpec(name, "parquet", str(directory / name)) for name in tables}


def test_files_with_the_ratios_of_tpch_join_lineitem_and_partsupp_on_both_keys(tmp_path: Path) -> None:
    plan, _ = plan_streams(View.sql(QUERIES["q9_columns"]), tpch_tables(tmp_path), {})
    choice = plan.choice  # type: ignore[union-attr]
    assert choice.why == BY_SIZES
    assert choice.chosen.candidates < 12_000
    met = min(
        (join for join in plan.joins if {"l", "ps"} <= names_below(plan, join)),  # type: ignore[union-attr]
        key=lambda join: len(names_below(plan, join)),
    )
    assert len(met.classes) == 2


def names_below(plan: Plan, join: JoinNode) -> set[str]:
    leaves = (leaf for child in join.children for leaf in plan.leaves(child))  # type: ignore[union-attr]
    return {plan.inputs[leaf].name for leaf in leaves}
