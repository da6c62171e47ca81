"""A view keeps the tree of its checkpoint, whatever statistics say later."""

import json
from dataclasses import replace
from pathlib import Path

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
from spillway.plan.operators.tree import shape_text
from spillway.plan.rules import Plan, plan_view
from spillway.plan.rules.tree_choice import BY_KEYS, BY_SIZES, GIVEN, KEPT
from spillway.state.storage.storage import Storage

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
