"""Any history of a tree of joins gives the view by its definition, once, and counts lineage exactly."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from kit.examples import tries
from kit.histories import Check, History, Player, drawn, open_engine
from kit.payload import KINDS, column, kind_type, value
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.operators.partitioning import MULTI_PARTITION, REPLICATE, TREE, Grid
from spillway.plan.operators.tree import Below, Leaf, TreePlan
from spillway.plan.operators.tree_layout import (
    GroupNumber,
    KeyHash,
    KeyValue,
    LeafColumn,
    Symbol,
    leaf_symbols,
)
from spillway.plan.rules.input_statistics import AskedInput, InputStatistics
from spillway.plan.rules.planner import plan_view
from spillway.state.binding.tree import bind_tree, symbol_name
from spillway.state.graph.graph import Graph
from spillway.state.rows.group import folded, group_of, group_starts, hash_in_group
from spillway.state.rows.run import read_run
from spillway.state.step.operator import HASH_WIRE_COLUMN, TAG_COLUMN
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

MIX = np.uint64(0x9E3779B97F4A7C15)
KEYS = 3
SECOND = 1_000_000
SPARK = {
    "binary": "binary",
    "boolean": "boolean",
    "byte": "tinyint",
    "date": "date",
    "decimal": "decimal(38,18)",
    "double": "double",
    "float": "float",
    "interval": "interval day to second",
    "list": "array<string>",
    "local timestamp": "timestamp_ntz",
    "map": "map<string,bigint>",
    "nested": "array<struct<d:decimal(20,3),s:string,n:array<bigint>>>",
    "small decimal": "decimal(9,2)",
    "string": "string",
    "struct": "struct<a:int,b:string>",
    "time": "time(6)",
    "timestamp": "timestamp",
}
"""The payloads of `payload` as the planner knows them."""


@dataclass(frozen=True)
class Row:
    stream: int
    id: int
    keys: tuple[int | None, ...]
    time: int
    """Seconds."""


def mixed(values: list[int], collide: int) -> np.ndarray[Any, Any]:
    return ((np.array(values, dtype=np.int64) % collide).astype(np.uint64) * MIX).view(np.int64)


def view_sql(history: History) -> str:
    streams = history["streams"]
    windows = history["windows"]
    tables = [
        f"s{n}" + (f" [RANGE {windows[n]} SECONDS]" if windows is not None and windows[n] is not None else "")
        for n in range(streams)
    ]
    items = [f"s{n}.id AS id{n}" for n in range(streams)]
    items += [f"s{n}.k{k} AS k{n}_{k}" for n in range(streams) for k in range(KEYS)]
    items += [f"s{n}.p AS p{n}" for n, kind in enumerate(history["payloads"]) if kind is not None]
    conditions = [f"s{a}.k{x} = s{b}.k{y}" for a, x, b, y in history["edges"]]
    conditions += [f"s{a}.k{x} <= s{b}.k{y}" for a, x, b, y in history["residuals"] if a != b]
    return f"SELECT {', '.join(items)} FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"


def expected_sql(history: History) -> str:
    """The same view in DuckDB, windows by their definition."""
    windows = history["windows"]
    conditions = []
    if windows is not None:
        youngest = f"greatest({', '.join(f's{n}.t' for n in range(history['streams']))})"
        conditions = [
            f"{youngest} - s{n}.t <= {reach}" for n, reach in enumerate(windows) if reach is not None
        ]
    plain = view_sql(history | {"windows": None, "payloads": ()})
    return " AND ".join([plain, *conditions])


@st.composite
def histories(draw: st.DrawFn, dense: bool = False) -> History:
    """Rows come from a drawn seed: rows drawn one by one are too few to have results of six joins."""
    streams = draw(st.integers(3, 8))
    key = st.integers(0, KEYS - 1)
    edges = [(draw(st.integers(0, stream - 1)), draw(key), stream, draw(key)) for stream in range(1, streams)]
    pair = st.tuples(st.integers(0, streams - 1), key, st.integers(0, streams - 1), key)
    if not dense:
        edges += [edge for edge in draw(st.lists(pair, max_size=2)) if edge[0] != edge[2]]
    reach = st.one_of(st.none(), st.integers(10, 45))
    windowed = not dense and draw(st.booleans())
    windows = [draw(reach) for _ in range(streams)] if windowed else None
    payload = st.one_of(st.none(), st.none(), st.sampled_from(sorted(KINDS)))
    return {
        "streams": streams,
        "join": draw(st.sampled_from([TREE, TREE, REPLICATE, MULTI_PARTITION])),
        "edges": edges,
        "residuals": [] if dense else draw(st.lists(pair, max_size=1)),
        "windows": windows if windows and any(one is not None for one in windows) else None,
        "statistics": draw(st.one_of(st.none(), st.integers(0, (1 << 32) - 1))),
        "epochs": drawn_rows(draw, streams, 0 if dense else draw(st.sampled_from([0, 0, 0.1]))),
        "payloads": tuple(draw(payload) for _ in range(streams)),
        "collide": draw(st.sampled_from([3, 1000])),
        **drawn(draw, [1, 3, 5], mask=(1 << 20) - 1),
    }


def drawn_rows(draw: st.DrawFn, streams: int, nulls: float) -> list[list[tuple[int, Any, int]]]:
    """Per epoch (stream, keys, second); key values are few, and the smallest is the most frequent."""
    random = np.random.default_rng(draw(st.integers(0, (1 << 32) - 1)))
    each = draw(st.integers(3, 7))
    rows = streams * each
    chance = [1, 0.63, 0.43, 0.33, 0.26]  # that two draws of 1 to 5 values, as below, are equal
    fits = [n for n, equal in enumerate(chance, 1) if each * (each * equal) ** (streams - 1) <= 200]
    values = draw(st.sampled_from(fits[:2] or [6]))
    epochs: list[list[tuple[int, Any, int]]] = [[] for _ in range(draw(st.integers(1, 5)))]
    silent = draw(st.one_of(st.none(), st.none(), st.none(), st.integers(0, streams - 1)))
    for number in range(rows):
        if number % streams == silent:  # an empty input
            continue
        drawn = np.minimum(random.integers(0, values, KEYS), random.integers(0, values, KEYS))
        keys = tuple(None if random.random() < nulls else int(value) for value in drawn)
        epochs[random.integers(len(epochs))].append((number % streams, keys, int(random.integers(10))))
    return epochs


def planned(history: History) -> TreePlan | None:
    """The plan, or None if one key joins all streams."""
    columns = [Column("id", "bigint"), *(Column(f"k{k}", "bigint") for k in range(KEYS))]
    lateness = 10 * SECOND if history["windows"] is not None else None
    columns.append(Column("t", "timestamp", lateness))
    kinds = history["payloads"]
    catalog = {
        f"s{n}": (*columns, *([] if kinds[n] is None else [Column("p", SPARK[kinds[n]])]))
        for n in range(history["streams"])
    }
    seed = history.get("statistics")
    statistics = None if seed is None else partial(random_statistics, seed)
    plan = plan_view(View.sql(view_sql(history)).with_join(history["join"]), catalog, statistics)
    return plan if isinstance(plan, TreePlan) else None


def random_statistics(seed: int, inputs: Sequence[AskedInput]) -> list[InputStatistics]:
    """Right or wrong, they change the tree and nothing else."""
    random = np.random.default_rng(seed)
    found = []
    for input_ in inputs:
        all_rows = 10 ** random.uniform(0, 7)
        distinct = {n: all_rows ** random.random() for n in input_.keys if random.random() < 0.8}
        found.append(InputStatistics(all_rows * random.random(), all_rows, distinct))
    return found


class Wire:
    """Makes the batches that Spark would make."""

    def __init__(self, plan: TreePlan, collide: int, groups: int, payloads: tuple[str | None, ...]) -> None:
        self.plan = plan
        self.payloads = payloads
        self.collide = collide
        self.grid = Grid.of(plan.partition, groups) if plan.partition else None
        exact = [not plan.partition and collide == 1000 and len(join.classes) == 1 for join in plan.joins]
        self.symbols = [leaf_symbols(plan, exact, leaf) for leaf in range(len(plan.inputs))]
        slots = [
            tuple(f"s{leaf}_{number}" for number in range(len(of_leaf)))
            for leaf, of_leaf in enumerate(self.symbols)
        ]
        self.operator = bind_tree(plan, exact, self._type, slots, groups)

    def _type(self, symbol: LeafColumn | KeyValue) -> pa.DataType:
        kind = self._payload(symbol)
        return pa.int64() if kind is None else kind_type(kind)

    def _payload(self, symbol: Symbol) -> str | None:
        """The kind of a payload column; None: another column."""
        if not isinstance(symbol, LeafColumn):
            return None
        text = self.plan.inputs[symbol.leaf].columns[symbol.column].expression.replace("`", "")
        return self.payloads[symbol.leaf] if text.rsplit(".", 1)[-1] == "p" else None

    def key(self, row: Row, key_class: int) -> int | None:
        leaf = row.stream
        return row.keys[self._key_number(leaf, key_class)]

    def _key_number(self, leaf: int, key_class: int) -> int:
        text = self.plan.inputs[leaf].keys[self.plan.key_classes[leaf].index(key_class)]
        return int(text.replace("`", "").rsplit("k", 1)[1])

    def joins(self, row: Row) -> bool:
        """Spark leaves out rows with a null key, and those whose own terms of a class differ."""
        return all(self.key(row, one) is not None for one in self.plan.key_classes[row.stream])

    def value(self, row: Row, symbol: Symbol) -> int | None:
        if isinstance(symbol, KeyHash):
            return int(mixed([self.key(row, symbol.key_class) or 0], self.collide)[0])
        if isinstance(symbol, KeyValue):
            return self.key(row, symbol.key_class)
        assert isinstance(symbol, LeafColumn)
        text = self.plan.inputs[row.stream].columns[symbol.column].expression.replace("`", "")
        if "unix_micros" in text:
            return row.time * SECOND
        name = text.rsplit(".", 1)[-1]
        return row.id if name == "id" else row.keys[int(name[1:])]

    def hash(self, row: Row) -> int:
        join = next(one for one in self.plan.joins if Leaf(row.stream) in one.children)
        parts = [mixed([self.key(row, key_class) or 0], self.collide) for key_class in join.classes]
        return int(folded(parts)[0])

    def copies(self, row: Row) -> list[int]:
        """The hashes of all copies of a row."""
        if self.grid is None:
            return [self.hash(row)]
        starts = group_starts(self.operator.operators[-1].groups)
        sides = []
        for one, share, weight in zip(self.grid.classes, self.grid.shares, self.grid.weights, strict=True):
            known = self.key(row, one) if one in self.plan.key_classes[row.stream] else None
            whole = range(share) if known is None else group_of(mixed([known], self.collide), share)
            sides.append([int(coordinate) * weight for coordinate in whole])
        groups = np.array([sum(cell) for cell in product(*sides)])
        return hash_in_group(starts[groups], np.full(len(groups), self.hash(row))).tolist()

    def group(self, keys: list[tuple[Any, ...]], classes: tuple[int, ...]) -> int:
        """The group of a result with these keys of its rows in a join by these classes."""

        def hashed(one: int) -> np.ndarray[Any, Any]:
            leaf = self.plan.representative(Below(len(self.plan.joins) - 1), one)
            return mixed([int(keys[leaf][self._key_number(leaf, one)])], self.collide)

        if self.grid is None:
            return int(
                group_of(folded([hashed(one) for one in classes]), self.operator.operators[-1].groups)[0]
            )
        sides = zip(self.grid.classes, self.grid.shares, self.grid.weights, strict=True)
        return sum(int(group_of(hashed(one), share)[0]) * weight for one, share, weight in sides)

    def batch(self, rows: list[Row]) -> pa.RecordBatch | None:
        copies = [(row, hashed) for row in rows if self.joins(row) for hashed in self.copies(row)]
        rows = [row for row, _ in copies]
        if not rows:
            return None
        arrays = [
            pa.array([row.stream for row in rows], pa.int8()),
            pa.array([hashed for _, hashed in copies], pa.int64()),
        ]
        names = [TAG_COLUMN, HASH_WIRE_COLUMN]
        for leaf, symbols in enumerate(self.symbols):
            for number, symbol in enumerate(symbols):
                kind = self._payload(symbol)
                if kind is None:
                    values = [self.value(row, symbol) if row.stream == leaf else None for row in rows]
                    arrays.append(pa.array(values, pa.int64()))
                else:
                    arrays.append(column(kind, [row.id if row.stream == leaf else None for row in rows]))
                names.append(f"s{leaf}_{number}")
        return pa.RecordBatch.from_arrays(arrays, names=names)


@pytest.mark.histories
@tries(everyday=4)
@given(histories())
def test_every_history_of_a_tree_gives_the_view_by_definition(
    play: Callable[[Check, History], None], history: History
) -> None:
    play(check, history)


def arrivals(history: History) -> list[list[Row]]:
    """The rows of each epoch, numbered in the order of their arrival."""
    ids = count()
    return [
        [Row(stream, next(ids), keys, number * 10 + second) for stream, keys, second in epoch]
        for number, epoch in enumerate(history["epochs"])
    ]


def check(history: History, directory: Path) -> None:
    plan = planned(history)
    assume(plan is not None)
    assert plan is not None
    wire = Wire(plan, history["collide"], history["groups"], history["payloads"])
    arrived = arrivals(history)
    rows = [row for epoch in arrived for row in epoch]
    batches = [[row for row in epoch if _own_terms_agree(history, row)] for epoch in arrived]
    wanted = Counter(map(repr, _by_definition(history, rows)))
    assume(sum(wanted.values()) <= 3000)
    event(f"results: {len(str(sum(wanted.values())))} digits")
    event(f"joins: {len(plan.joins)}, by statistics: {plan.chosen_tree is not None}")
    player = Player(history, wire.operator, directory, 5 * sum(wanted.values()))  # of all joins, about
    player.play([wire.batch(batch) for batch in batches])
    assert Counter(map(repr, player.sink.rows())) == wanted
    counters = player.engine.manifest.counters
    assert counters.results_runtime + counters.results_cleanup == sum(wanted.values())
    event(f"spilled: {counters.spills > 0}, clean-up results of the root: {counters.results_cleanup > 0}")
    assert counters.input_rows == sum(wire.joins(row) for arrived in batches for row in arrived)


def _own_terms_agree(history: History, row: Row) -> bool:
    """Filters of single inputs, which Spark applies: several terms of one class in one stream are equal."""
    terms = [(a, x) for a, x, _, _ in history["edges"]] + [(b, y) for _, _, b, y in history["edges"]]
    parent = {term: term for term in terms}

    def find(term: tuple[int, int]) -> tuple[int, int]:
        while parent[term] != term:
            term = parent[term]
        return term

    for a, x, b, y in history["edges"]:
        parent[find((a, x))] = find((b, y))
    own: dict[tuple[int, int], set[int | None]] = {}
    for stream, key in terms:
        if stream == row.stream:
            own.setdefault(find((stream, key)), set()).add(row.keys[key])
    return all(len(values) == 1 and None not in values for values in own.values())


def _by_definition(history: History, rows: list[Row]) -> list[tuple[Any, ...]]:
    """DuckDB's answer, with the payloads of the rows behind."""
    schema = pa.schema([("id", pa.int64()), *((f"k{k}", pa.int64()) for k in range(KEYS)), ("t", pa.int64())])
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for stream in range(history["streams"]):
            mine = [row for row in rows if row.stream == stream]
            columns = [[row.id for row in mine], *([row.keys[k] for row in mine] for k in range(KEYS))]
            columns.append([row.time for row in mine])
            table = pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)
            connection.register(f"s{stream}", table)
        found = connection.execute(expected_sql(history)).fetchall()
    kinds = [(n, kind) for n, kind in enumerate(history["payloads"]) if kind is not None]
    return [(*row, *(value(kind, row[n]) for n, kind in kinds)) for row in found]


@pytest.mark.histories
@tries(2, everyday=4)
@given(histories(dense=True))
def test_lineage_counts_are_those_of_the_result_rows(
    play: Callable[[Check, History], None], history: History
) -> None:
    """Without spills counts are never reset, so the manifest has them from the beginning."""
    play(check_lineage, history)


def check_lineage(history: History, directory: Path) -> None:
    plan = planned(history)
    assume(plan is not None)
    assert plan is not None
    wire = Wire(plan, history["collide"], history["groups"], history["payloads"])
    tree: Graph = wire.operator
    sink = ListSink(str(directory / "staging"))
    processors = min(history["processors"][0], history["groups"])
    limits = replace(history["limits"], results=max(50, history["limits"].results))
    config = EngineConfig(processors, history["groups"], str(directory / "tier"), limits=limits)
    engine = open_engine(directory, config, tree, sink)
    for number, epoch in enumerate(arrivals(history)):
        kept = [row for row in epoch if _own_terms_agree(history, row)]
        engine.run_epoch(LocalCluster(tree, wire.batch(kept)), number)
    while engine.has_pending:
        engine.run_epoch(LocalCluster(tree), None)
    found: Counter[int] = Counter()
    streams = history["streams"]
    for result in sink.rows():
        keys = [result[streams + n * KEYS : streams + (n + 1) * KEYS] for n in range(streams)]
        for number, join in enumerate(plan.joins):
            found[tree.first_groups[number] + wire.group(keys, join.classes)] += 1
    counted = {group: state.outputs for group, state in engine.manifest.groups.items() if state.outputs}
    assert counted == dict(found)
    held = {group: state.inter_rows for group, state in engine.manifest.groups.items() if state.inter_rows}
    assert held == _held_above(engine, tree, directory)
    event(f"results: {len(str(sum(found.values())))} digits")
    event(f"joins: {len(plan.joins)}, kept rows above: {bool(held)}")
    assert engine.manifest.counters.results_runtime == sum(found.values()) // len(plan.joins)


def _held_above(engine: Engine, tree: Graph, directory: Path) -> dict[int, int]:
    """Per group, the rows that joins above it have in their runs, by the number that each row carries."""
    storage = Storage(str(directory / "checkpoint"))
    held: Counter[int] = Counter()
    for run in engine.manifest.runs.values():
        columns = read_run(storage, run).columns
        for below in range(len(tree.operators)):
            name = symbol_name(GroupNumber(below))
            if name in columns.schema.names:
                for group in columns.column(name).to_pylist():
                    held[tree.first_groups[below] + group] += 1
    return dict(held)
