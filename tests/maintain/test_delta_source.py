"""Delta tables as sources: every strategy; appends, deletes, overwrites, compaction; versions in between."""

import json
import random
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable, write_deltalake

from kit.tables import change_delta, random_rows
from spillway.errors import SourceError
from spillway.maintain.choice import FixedChoice
from spillway.maintain.definition import define_view
from spillway.maintain.execute import Answer
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources.delta import DeltaServer
from spillway.maintain.strategies.registry import STRATEGIES, plan_round
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore
from spillway.model.view import View

TABLES = ("a", "b", "c")
VIEW = "SELECT a.x AS x, b.y AS y, c.y AS z FROM a JOIN b ON a.y = b.x JOIN c ON b.y = c.x AND a.x = c.y"


def change(root: Path, chance: random.Random) -> None:
    change_delta(root / chance.choice(TABLES), chance)


class Busy(DeltaServer):
    """Others write before every answer."""

    chance = random.Random(7)

    def ask(self, *words: object) -> Answer:
        change(self._root, self.chance)
        return super().ask(*words)  # type: ignore[arg-type]


def expected(root: Path, versions: dict[str, int]) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as base:
        for name in TABLES:
            base.register(name, DeltaTable(root / name, version=versions[name]).to_pyarrow_table())
        return Counter(base.execute(VIEW).fetchall())


def test_every_strategy_over_versions(tmp_path: Path) -> None:
    chance = random.Random(3)
    for name in TABLES:
        write_deltalake(tmp_path / name, random_rows(chance, 8))
    server = Busy(tmp_path)
    definition = define_view(View.sql(VIEW), {name: server.columns(name) for name in TABLES})
    store = ViewStore.open(tmp_path / "view.duckdb", definition.fingerprint, ["x", "y", "z"])
    chosen = ["batch"]
    manager = ViewManager(
        definition,
        [TableLocation("lake", name) for name in TABLES],
        {"lake": server},
        store,
        FixedChoice(lambda graph, sizes: plan_round(chosen[0], graph, sizes)),
    )
    manager.open()
    for strategy in STRATEGIES:
        chosen[0] = strategy
        change(tmp_path, chance)
        manager.round()
        state = store.state()
        assert state is not None
        stored = Counter({tuple(row.values())[:-1]: row["weight"] for row in store.rows().to_pylist()})
        assert stored == expected(tmp_path, json.loads(state.vectors["lake"])["at"]), strategy
    assert manager.verify() == 0
    manager.close()
    store.close()
    server.close()


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        DeltaServer(tmp_path).columns("none")
