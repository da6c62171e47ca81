"""Files read without Spark give the wire rows that Spark gives: every row, as often, with the same types.

Random files (types, nulls, NaN, both zeroes, partition columns, columns missing or in another order, older
forms) under random views. A file or an input may be left to Spark; what is read here must be equal.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kit.examples import examples
from kit.random_files import PARTITIONS, TYPES, Chance, Source, array, write_source
from spillway.model import View
from spillway.plan.rules import plan_view
from spillway.scan import PARQUET, ScanInput, deal, read
from spillway.scan.files import file_splits
from spillway.scan.native import SPARK_SETTINGS, native_inputs
from spillway.spark.sources.columns import columns_of
from spillway.spark.stream import Wire, bind
from spillway.state.rows import xxhash64
from spillway.state.step.intake import in_utc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["UTC", "America/St_Johns"])
def zone(spark: "SparkSession", request: pytest.FixtureRequest) -> Iterator[str]:
    """The session's time zone, which must not matter.

    Spark does not push filters into row groups here: it would lose rows with NaN, which is above all numbers
    but not in the statistics of a row group.
    """
    settings = {"spark.sql.session.timeZone": request.param, "spark.sql.parquet.filterPushdown": "false"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield request.param
    for name, value in before.items():
        spark.conf.set(name, str(value))


def test_the_settings_that_scans_rely_on_are_those_of_a_session(spark: "SparkSession") -> None:
    assert {name: str(spark.conf.get(name)) for name in SPARK_SETTINGS} == SPARK_SETTINGS


def test_hashes_are_those_of_spark(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    chance = Chance(1)
    rows = 400
    columns = {f"c{place}": array(chance, type_, rows) for place, type_ in enumerate(TYPES)}
    columns["long text"] = pa.array([chance.randbytes(row % 101) for row in range(rows)])
    table = pa.table({"id": range(rows), **columns})
    pq.write_table(table, tmp_path / "f.parquet", store_decimal_as_integer=False)
    names = list(columns)
    several = [chance.sample(names, 3) for _ in range(30)]
    wanted = [[name] for name in names] + several + [names]
    frame = spark.read.parquet(str(tmp_path))
    hashes = [F.xxhash64(*(F.col(f"`{name}`") for name in parts)) for parts in wanted]
    found = (
        frame.select("id", *(value.alias(f"h{n}") for n, value in enumerate(hashes))).toArrow().sort_by("id")
    )
    for place, parts in enumerate(wanted):
        made = xxhash64([table[name].combine_chunks() for name in parts])
        assert found[f"h{place}"].to_pylist() == made.tolist(), parts


def exact(values: pa.ChunkedArray) -> list[Any]:
    """Values that tell zeroes apart and count; times as numbers, because Python has fewer years."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_date(kind):
        values = values.cast(pa.int32())
    found: list[Any] = values.to_pylist()
    return [repr(abs(v)) if v != v else repr(v) for v in found] if pa.types.is_floating(kind) else found


def counted(table: pa.Table) -> Counter[Any]:
    return Counter(zip(*(exact(column) for column in table.columns), strict=True))


def wire_rows(wire: Wire, scan: ScanInput) -> pa.Table:
    """Spark's rows of one input, in UTC as state has them."""
    names = ["t", "h", *(slot for slot, _ in scan.slots)]
    rows = wire.stream.where(f"t = {scan.tag}").select(*names).toArrow()
    return pa.table({name: pa.chunked_array([in_utc(rows[name].combine_chunks())]) for name in names})


def check(
    spark: "SparkSession",
    chance: Chance,
    view: View,
    sources: dict[str, Source],
    event_time: str | None = None,
) -> tuple[int, list[str]]:
    """How many files were read here, and why others were left to Spark."""
    frames = {name: source.frame(spark, source.files) for name, source in sources.items()}
    columns = {name: columns_of(frame) for name, frame in frames.items()}
    for name, own in columns.items():
        late = (replace(column, lateness_us=0) if column.name == event_time else column for column in own)
        columns[name] = tuple(late)
    plan = plan_view(view, columns)
    wire = bind(plan, frames, 16)
    inputs = native_inputs(plan, [columns[input_.source] for input_ in plan.inputs], wire.types, wire.graph)
    here, left = 0, []
    for input_, scan in zip(plan.inputs, inputs, strict=True):
        source = sources[input_.source]
        if isinstance(scan, str):
            left += [scan for _ in source.files]
            continue
        splits = {
            file: file_splits(file, scan, root=str(source.root), format=PARQUET) for file in source.files
        }
        files = [file for file, found in splits.items() if not isinstance(found, str)]
        left += [found for found in splits.values() if isinstance(found, str)]
        here += len(files)
        if not files:
            continue
        read_here = [split for file in files for split in splits[file] if not isinstance(split, str)]
        made = [
            batch
            for parts in deal(read_here, chance.choice([1, 3]))
            for split in parts
            for batch in read(scan, split, chance.choice([2, 1000]))
        ]
        wanted = wire_rows(bind(plan, frames | {input_.source: source.frame(spark, files)}, 16), scan)
        if made:
            rows = pa.Table.from_batches(made)
            assert rows.schema.types == wanted.schema.types
            ours, theirs = counted(rows), counted(wanted)
            assert ours == theirs, (view.query, source.columns, ours - theirs, theirs - ours)
        else:
            assert wanted.num_rows == 0
    return here, left


FILTERS = (
    "{a}.x > 0", "{a}.x IS NOT NULL AND {a}.y <> 3", "{a}.s IS NULL OR length({a}.s) > 2", "{a}.x % 3 = 1",
    "{a}.s LIKE 'a%' OR {a}.x IN (1, 2, -1)", "NOT ({a}.x <= 5)", "{a}.x BETWEEN -100 AND 5", "{a}.s >= 'Z'",
    "{a}.d > 0.5D", "{a}.d <=> CAST('NaN' AS DOUBLE)", "{a}.d < {a}.x", "{a}.s = 'a'",
)  # fmt: skip
ITEMS = (
    "{a}.x", "{a}.s", "{a}.v", "{a}.v", "{a}.d", "{a}.x % 7", "coalesce({a}.x, 5)", "length({a}.s)",
    "{a}.s || '-' || {a}.s", "CASE WHEN {a}.x > 3 THEN {a}.s ELSE 'none' END", "CAST({a}.x AS bigint) * 3",
    "CAST({a}.x AS double) / 3", "CAST({a}.x AS string)", "{a}.x IS NULL", "least({a}.d, 1.5D)", "-{a}.d",
    "upper({a}.s)", "{a}.x = {a}.y", "greatest({a}.x, {a}.y, 3)", "nullif({a}.x, 1)", "CAST({a}.y AS float)",
    "concat({a}.s, 'x')", "abs({a}.d)", "IF({a}.x > 0, {a}.d, NULL)", "{a}.d + {a}.x", "{a}.d % 2",
)  # fmt: skip
FAMILIES = (
    *((type_,) for type_ in TYPES),
    ("int", "bigint"), ("tinyint", "smallint", "int"), ("int", "decimal(9,2)"), ("float", "double"),
    ("bigint", "double"), ("decimal(9,2)", "decimal(38,10)"), ("decimal(19,3)", "double"), ("int", "float"),
)  # fmt: skip
"""Types of keys that are compared with each other."""


def random_view(chance: Chance, root: Path) -> tuple[View, dict[str, Source]]:
    names = ["a", "b", "c"][: chance.choice([2, 2, 3])]
    keys, others = chance.choice(FAMILIES), chance.choice(FAMILIES)
    sources = {}
    for name in names:
        columns = {
            "k": chance.choice(keys), "j": chance.choice(others), "x": "int", "y": "smallint", "s": "string",
            "d": "double", "v": chance.choice(list(TYPES)),
        }  # fmt: skip
        partition = None
        if chance.random() < 0.4:
            partition = chance.choice(["v", "s", "x"])
            columns[partition] = chance.choice(list(PARTITIONS)) if partition == "v" else columns[partition]
        sources[name] = write_source(chance, root / name, columns, partition)
    items = [chance.choice(ITEMS).format(a=chance.choice(names)) + f" AS o{n}" for n in range(4)]
    conditions = [f"({chance.choice(FILTERS).format(a=name)})" for name in names if chance.random() < 0.5]
    first, *further = names
    if len(names) == 3 and chance.random() < 0.6:  # joins on different keys: a tree
        conditions += ["a.k = b.k", "b.j = c.j"]
    else:
        conditions += [f"{first}.k = {name}.k" for name in further]
        if chance.random() < 0.4:
            conditions += [f"{first}.j = {name}.j" for name in further]
    sql = f"SELECT {', '.join(items)} FROM {', '.join(names)} WHERE {' AND '.join(conditions)}"
    kind = chance.choice(["tree", "tree", "replicate", "multi-partition"])
    return replace(View.sql(sql), join_kind=kind), sources


@pytest.mark.parametrize("seed", range(examples(2)))
def test_random_files_under_random_views(spark: "SparkSession", tmp_path: Path, zone: str, seed: int) -> None:
    chance = Chance(f"{seed} {zone}")
    view, sources = random_view(chance, tmp_path)
    check(spark, chance, view, sources)


STATISTICS = (
    "PARTITION BY {key} ORDER BY ts, x RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW",
    "PARTITION BY {key}, j ORDER BY ts, x ROWS BETWEEN 5 PRECEDING AND CURRENT ROW",
)


@pytest.mark.parametrize("seed", range(examples(5)))
def test_random_files_under_windows_and_statistics(
    spark: "SparkSession", tmp_path: Path, zone: str, seed: int
) -> None:
    """Event times are microseconds, and statistics keep null keys."""
    chance = Chance(f"times {seed} {zone}")
    time = chance.choice(["timestamp", "timestamp_ntz"])
    sources = {}
    for name in "ab":
        columns = {
            "k": chance.choice(list(TYPES)) if name == "a" else "",
            "j": "double",
            "x": "int",
            "ts": time,
        }
        columns["k"] = columns["k"] or sources["a"].columns["k"]
        sources[name] = write_source(chance, tmp_path / name, columns, None)
    window = "SELECT a.x, b.x AS y FROM a [RANGE 5 MINUTES] JOIN b ON a.k = b.k WHERE a.x > 0"
    over = f"SELECT x, sum(x) OVER ({chance.choice(STATISTICS).format(key='k')}) AS n, ts, j FROM a"
    for sql in (window, over):
        check(spark, chance, View.sql(sql), sources, event_time="ts")


def test_most_files_are_read_here(spark: "SparkSession", tmp_path: Path, zone: str) -> None:
    """Otherwise the other tests would compare nothing."""
    here = there = 0
    for seed in range(8):
        chance = Chance(f"share {seed} {zone}")
        view, sources = random_view(chance, tmp_path / str(seed))
        counts = check(spark, chance, view, sources)
        here, there = here + counts[0], there + len(counts[1])
    assert here > there > 0


@pytest.mark.parametrize("settings", [{}, {"spark.sql.parquet.writeLegacyFormat": "true"}])
def test_files_that_spark_wrote_are_read_here(
    spark: "SparkSession", tmp_path: Path, zone: str, settings: dict[str, str]
) -> None:
    """Spark writes instants as INT96 by default, and decimals in several forms."""
    chance = Chance(3)
    types = {f"c{place}": type_ for place, type_ in enumerate(TYPES)} | {
        "k": "bigint",
        "p": "int",
        "q": "string",
    }
    table = pa.table({name: array(chance, type_, 60) for name, type_ in types.items()})
    values = pa.array([chance.choice(["a=b", "x/y", "ä %", None]) for _ in range(60)])
    table = table.set_column(table.schema.get_field_index("q"), "q", values)
    for name in settings:
        spark.conf.set(name, settings[name])
    try:
        pq.write_table(table, tmp_path / "all.parquet")
        frame = Source(tmp_path, types, []).frame(spark, [str(tmp_path / "all.parquet")])
        frame.repartition(2).write.partitionBy("p", "q").parquet(str(tmp_path / "a"))
    finally:
        for name in settings:
            spark.conf.unset(name)
    files = sorted(str(path) for path in (tmp_path / "a").rglob("*.parquet"))
    sources = dict.fromkeys("ab", Source(tmp_path / "a", types, files))
    items = ", ".join(f"a.{name} AS {name}" for name in types)
    for key in ("k", "q", "c14"):
        sql = f"SELECT {items} FROM a JOIN b ON a.{key} = b.{key}"
        assert check(spark, chance, View.sql(sql), sources) == (2 * len(files), [])


def test_a_file_without_bytes_has_no_rows(spark: "SparkSession", tmp_path: Path, zone: str) -> None:
    pq.write_table(pa.table({"k": [1, 2], "x": pa.array([3, 4], pa.int32())}), tmp_path / "f.parquet")
    (tmp_path / "g.parquet").write_bytes(b"")
    files = [str(tmp_path / name) for name in ("f.parquet", "g.parquet")]
    sources = dict.fromkeys("ab", Source(tmp_path, {"k": "bigint", "x": "int"}, files))
    view = View.sql("SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k")
    assert check(spark, Chance(1), view, sources) == (4, [])
