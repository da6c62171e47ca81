"""The engine of `bench scarce` as it runs it: a tree over streams under a budget, exact, types included."""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.lab.bench.scarce import ScarceStreams
from spillway.lab.engines.multiset import MultisetDifference
from spillway.lab.engines.peers import tpch_argv
from spillway.lab.engines.process import run_subprocess
from spillway.manager.budget import MINIMUM_BYTES

pytestmark = pytest.mark.slow

QUERY, FILES = "q9_columns", 4
LINES, ORDERS, PARTS, SUPPLIERS, NATIONS = 40_000, 10_000, 500, 20, 5
MONEY = pa.decimal128(15, 2)


def write_tables(directory: Path) -> None:
    """Small tables with the columns of the query."""
    chance = np.random.default_rng(5)
    money = pa.array([Decimal(cents).scaleb(-2) for cents in range(1_000)], MONEY)
    days = pa.array([date(1995, 1, 1) + timedelta(day) for day in range(100)])

    def some(values: pa.Array, rows: int) -> pa.Array:
        return values.take(pa.array(chance.integers(0, len(values), rows)))

    part, supplier = np.divmod(np.arange(PARTS * SUPPLIERS), SUPPLIERS)
    tables: dict[str, dict[str, Any]] = {
        "part": {
            "p_partkey": np.arange(PARTS),
            "p_name": [("green " if key % 2 else "red ") + str(key) for key in range(PARTS)],
        },
        "supplier": {"s_suppkey": np.arange(SUPPLIERS), "s_nationkey": np.arange(SUPPLIERS) % NATIONS},
        "nation": {"n_nationkey": np.arange(NATIONS), "n_name": [f"nation {key}" for key in range(NATIONS)]},
        "partsupp": {
            "ps_partkey": part,
            "ps_suppkey": supplier,
            "ps_supplycost": some(money, PARTS * SUPPLIERS),
        },
        "orders": {"o_orderkey": np.arange(ORDERS), "o_orderdate": some(days, ORDERS)},
        "lineitem": {
            "l_orderkey": chance.integers(0, ORDERS, LINES),
            "l_partkey": chance.integers(0, PARTS, LINES),
            "l_suppkey": chance.integers(0, SUPPLIERS, LINES),
            "l_extendedprice": some(money, LINES),
            "l_discount": some(money, LINES),
            "l_quantity": some(money, LINES),
        },
    }
    directory.mkdir()
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet")


def test_a_tree_of_tpch_under_a_budget_is_exact(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables")
    streams = ScarceStreams(QUERY, tmp_path / "tables", tmp_path, FILES)
    streams.write()
    argv = tpch_argv(tmp_path / "data", tmp_path / "out", QUERY, memory_bytes=MINIMUM_BYTES)
    result = run_subprocess(argv, 240.0)
    assert result.finished, result.note
    assert result.results == streams.wanted_rows() > LINES // 4
    assert streams.difference(Path(result.output)) == MultisetDifference(0, 0)
    schema = pq.read_schema(next(Path(result.output).rglob("*.parquet")))
    assert schema.types == [pa.string(), pa.date32(), MONEY, MONEY, MONEY, MONEY]
    lost = next(Path(result.output).rglob("*.parquet"))
    rows = pq.read_metadata(lost).num_rows
    lost.unlink()
    assert streams.difference(Path(result.output)) == MultisetDifference(rows, 0)
