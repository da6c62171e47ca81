"""Random views over stored relations against DuckDB, by all ways: names, types, bounds, nulls."""

import datetime
import math
import random
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spillway.compute import ComputeConfig
from spillway.compute.trees.choice import ALGORITHMS, choose
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.spark.compute.computation import plan_computation

INTEGERS = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64()}
TYPES = INTEGERS | {
    "string": pa.string(),
    "double": pa.float64(),
    "date": pa.date32(),
    "decimal": pa.decimal128(10, 2),
}
NAMES = ("k", "K2", "a b", "x.y", "sel`ect", "select", "Ü", "k=1", "p")
DIRECTORIES = ("plain", "with space", "k=7", "percent%20", "c0=1")


class DrawnView:
    """A view over two to five relations in Parquet files, its text for both, and DuckDB's rows of it."""

    def __init__(self, seed: int, directory: Path) -> None:
        self._random = random.Random(seed)
        self._kinds = tuple(INTEGERS if seed % 3 else TYPES)
        count = self._random.randint(2, 5)
        self._columns: list[dict[str, str]] = [{} for _ in range(count)]
        self._conditions: list[tuple[tuple[int, str], tuple[int, str]]] = []
        for right in range(1, count):
            self._edge(self._random.randrange(right), right)
        for _ in range(self._random.choice((0, 1, 2))):
            self._edge(*self._random.sample(range(count), 2))
        domain = self._random.choice((2, 4, 8))
        self.specs: dict[str, SourceSpec] = {}
        tables = {}
        for number in range(count):
            tables[f"t{number}"] = self._table(number, domain)
            path = directory / self._random.choice(DIRECTORIES) / f"t{number}"
            self.specs[f"t{number}"] = _store(tables[f"t{number}"], path)
        outputs = [(number, name) for number, own in enumerate(self._columns) for name in own]
        chosen = [one for one in outputs if self._random.random() < 0.6] or outputs[:1]
        self.sql = self._text(chosen, "`")
        with duckdb.connect() as database:
            for name, table in tables.items():
                database.register(name, table)
            self.rows = counted(database.sql(self._text(chosen, '"')).to_arrow_table())

    def _edge(self, left: int, right: int) -> None:
        """An equality; sometimes of two integer types, and on a column that has one already."""
        kind = self._random.choice(self._kinds)
        other = (
            self._random.choice(tuple(INTEGERS)) if kind in INTEGERS and self._random.random() < 0.4 else kind
        )
        self._conditions.append(((left, self._column(left, kind)), (right, self._column(right, other))))

    def _column(self, number: int, kind: str) -> str:
        own = self._columns[number]
        same = [name for name, known in own.items() if known == kind]
        if same and self._random.random() < 0.4:
            return self._random.choice(same)
        free = [name for name in NAMES if name not in own]
        name = self._random.choice(free) if free else f"c{len(own)}"
        own[name] = kind
        return name

    def _table(self, number: int, domain: int) -> pa.Table:
        rows = self._random.choice((0, 1, 3, 10, 10, 20, 20, 20))
        table = pa.table(
            {
                name: pa.array([self._value(kind, domain) for _ in range(rows)], TYPES[kind])
                for name, kind in self._columns[number].items()
            }
        )
        return pa.concat_tables([table, table.slice(0, rows // 3)])  # rows that occur twice

    def _value(self, kind: str, domain: int) -> Any:
        if self._random.random() < 0.1:
            return None
        small = self._random.randrange(domain)
        if kind in INTEGERS:
            high = 2 ** (int(kind[3:]) - 1) - 1
            return self._random.choice((small,) * 6 + (high, high - 1, -high, -high - 1, -1))
        if kind == "double":
            return self._random.choice((float(small),) * 3 + (0.0, -0.0, math.nan, math.inf))
        if kind == "string":
            return self._random.choice((str(small),) * 3 + ("", "a", "A", "a ", "é"))
        if kind == "date":
            return datetime.date(1999, 12, 30) + datetime.timedelta(small)
        return Decimal(small) / 4

    def _text(self, outputs: Iterable[tuple[int, str]], mark: str) -> str:
        def quoted(name: str) -> str:
            return mark + name.replace(mark, mark + mark) + mark

        items = ", ".join(f"t{t}.{quoted(name)} AS o{n}" for n, (t, name) in enumerate(outputs))
        text = f"SELECT {items} FROM t0"
        for right in range(1, len(self._columns)):
            on = [
                " = ".join(f"t{t}.{quoted(name)}" for t, name in sides)
                for sides in self._conditions
                if max(t for t, _ in sides) == right
            ]
            text += f" JOIN t{right} ON {' AND '.join(on)}"
        return text


def _store(table: pa.Table, path: Path) -> SourceSpec:
    path.mkdir(parents=True)
    for part, begin in enumerate((0, 4)):
        length = 4 if part == 0 else None
        pq.write_table(table.slice(begin, length), path / f"part-{part}.parquet", row_group_size=5)
    return SourceSpec(path.name, "parquet", str(path))


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows as a bag in which one not-a-number equals another, and zero its negative."""
    columns = (
        ["nan" if value != value else value for value in table[name].to_pylist()]
        for name in table.column_names
    )
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_random_views_have_duckdbs_rows(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    drawn = DrawnView(seed, tmp_path)
    by_columns = plan_computation(spark, drawn.sql, drawn.specs, ComputeConfig(way="tree"))
    frames = {name: spark.read.parquet(str(spec.path)) for name, spec in drawn.specs.items()}
    memory = 80 << 20 if seed % 2 else None
    by_sql = plan_computation(spark, drawn.sql, frames, ComputeConfig(way="tree", memory_bytes=memory))
    assert not by_sql.plan.cost.machine.by_columns
    by_spark = plan_computation(spark, drawn.sql, drawn.specs, ComputeConfig(way="spark"))
    shapes = [(by_sql, "chosen"), (by_spark, "chosen")]
    if by_columns.plan.cost.machine.by_columns:
        shapes += [
            (by_columns, name) for name in ("chosen", *random.Random(seed).sample(sorted(ALGORITHMS), 2))
        ]
    for number, (computation, name) in enumerate(shapes):
        if name != "chosen":
            computation.plan = computation.plan.with_tree(choose(computation.plan.cost, name).tree)
        out = tmp_path / f"out-{number}"
        computation.run(SinkSpec("parquet", str(out)))
        assert counted(pq.read_table(out)) == drawn.rows, (name, drawn.sql)


def test_a_directory_that_is_a_column_wins_over_the_file(spark: SparkSession, tmp_path: Path) -> None:
    """As in Spark: below a source's path `k=5` is the value of k, whatever the file says."""
    path = tmp_path / "a" / "k=5"
    path.mkdir(parents=True)
    pq.write_table(pa.table({"k": [1, 2], "n": [10, 20]}), path / "part.parquet")
    pq.write_table(pa.table({"k": pa.array([5], pa.int32())}), tmp_path / "b.parquet")
    specs = {
        "a": SourceSpec("a", "parquet", str(tmp_path / "a")),
        "b": SourceSpec("b", "parquet", str(tmp_path / "b.parquet")),
    }
    computation = plan_computation(spark, "SELECT a.k, a.n FROM a JOIN b ON a.k = b.k", specs)
    computation.run(SinkSpec("parquet", str(tmp_path / "out")))
    assert counted(pq.read_table(tmp_path / "out")) == {(5, 10): 1, (5, 20): 1}


@pytest.mark.parametrize("condition", ["1 = 0", "false", "a.k > 5 AND 1 = 0"])
def test_a_condition_on_no_relation_counts(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    pq.write_table(pa.table({"k": [1, 7]}), tmp_path / "a.parquet")
    specs = {name: SourceSpec(name, "parquet", str(tmp_path / "a.parquet")) for name in ("a", "b")}
    sql = f"SELECT a.k FROM a JOIN b ON a.k = b.k WHERE {condition}"
    assert plan_computation(spark, sql, specs).run(SinkSpec("count"))["rows"] == 0
