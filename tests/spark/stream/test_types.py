"""Every type as payload, and every keyable type as key: what goes in comes out, equal keys meet."""

import datetime as dt
import math
import shutil
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from spillway.errors import ViewError
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.model.view import View
from spillway.plan.rules.planner import plan_view
from spillway.spark.sources.columns import columns_of
from spillway.spark.stream.wire import bind
from spillway.state.join.reference import join
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

if TYPE_CHECKING:
    from conftest import Lab

UTC = dt.UTC
NAN, NEGATIVE_ZERO = math.nan, -0.0

PAYLOADS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "tinyint": (pa.int8(), [-128, 127, None]),
    "smallint": (pa.int16(), [-32_768, 32_767, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [0.5, NAN, math.inf]),
    "double": (pa.float64(), [0.1, NAN, NEGATIVE_ZERO]),
    "decimal_small": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.01"), None]),
    "decimal_wide": (pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789"), None, 0]),
    "string": (pa.string(), ["", "ä\0\n'\"", None]),
    "binary": (pa.binary(), [b"", b"\x00\xff", None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None] * 2),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(2024, 3, 31, 2, 30, 0, 1), None] * 2),
    "array_": (pa.list_(pa.int32()), [[1, None, 3], [], None]),
    "struct_": (
        pa.struct([("n", pa.int64()), ("s", pa.string()), ("at", pa.timestamp("us", "UTC"))]),
        [{"n": 1, "s": None, "at": dt.datetime(2024, 1, 1, tzinfo=UTC)}, None] * 2,
    ),
    "map_": (pa.map_(pa.string(), pa.float64()), [[("a", 1.5), ("b", None)], [], None]),
    "nested": (
        pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.string()))), ("d", pa.decimal128(20, 3))])),
        [[{"m": [(1, ["x", None])], "d": Decimal("1.250")}, None], [{"m": None, "d": None}], None],
    ),
}


def payload(ids: list[int], keys: list[int | None]) -> pa.Table:
    columns = {"k": pa.array(keys, pa.int64()), "id": pa.array(ids, pa.int64())}
    for name, (kind, values) in PAYLOADS.items():
        columns[name] = pa.array([values[one % 3] for one in ids], kind)
    return pa.table(columns)


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_every_type_is_carried_through_state_pending_and_restart(
    lab: "Lab", counted: Callable[[pa.Table], Counter[Any]], sink: str
) -> None:
    """Small limits and a restart: values pass the wire, runs, merges, pending files and results."""
    for name in "abc":
        lab.stream(
            name, payload([0, 1, 2], [1, 2, None]), payload([3, 4, 5], [1, 1, 2]), payload([6, 7], [2, 1])
        )
    items = ", ".join(f"{'abc'[n % 3]}.{name} AS {name}" for n, name in enumerate(PAYLOADS))
    sql = f"SELECT a.id AS p, b.id AS q, c.id AS r, {items} FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
    limits = {"epoch_rows": 6, "epoch_results": 17, "groups": 8, "sink": sink}
    lab.run_epochs(sql, 3, processors=2, **limits)
    lab.run(sql, processors=1, **limits)
    inputs = [pa.concat_tables(lab.tables[name]).to_pylist() for name in "abc"]
    wanted = [
        {"p": row[0]["id"], "q": row[1]["id"], "r": row[2]["id"]}
        | {name: row[n % 3][name] for n, name in enumerate(PAYLOADS)}
        for row in join(inputs, lambda _, row: row["k"])
    ]
    schema = pa.schema(
        [(name, pa.int64()) for name in "pqr"] + [(name, kind) for name, (kind, _) in PAYLOADS.items()]
    )
    assert lab.results(sink) == counted(pa.Table.from_pylist(wanted, schema))


def day(number: int) -> dt.date:
    return dt.date(2024, 1, 1) + dt.timedelta(days=number)


def instant(number: int) -> dt.datetime:
    return dt.datetime(2024, 3, 31, 0, 30, tzinfo=UTC) + dt.timedelta(minutes=30 * number)


KEYS: dict[str, tuple[list[pa.DataType], list[list[Any]]]] = {
    # Per input its type; the same keys must be equal across types.
    "integers widen": (
        [pa.int8(), pa.int32(), pa.int64()],
        [[1, 2, -3, None], [1, 2, 2, 300], [1, -3, 2**40, None]],
    ),
    "integer and decimals": (
        [pa.int32(), pa.decimal128(10, 2), pa.decimal128(30, 5)],
        [
            [1, 2, -3, None],
            [Decimal("1.00"), Decimal("2.50"), Decimal("-3"), None],
            [1, Decimal("2.5"), -3, 2],
        ],
    ),
    "short decimals": (
        [pa.decimal128(12, 2)] * 3,
        [[Decimal("0.10"), Decimal("-7"), None]] * 3,
    ),
    "integer, float and double": (
        [pa.int32(), pa.float32(), pa.float64()],
        [[0, 1, 2, None], [NEGATIVE_ZERO, 1.0, 0.5, None], [0.0, 1.0, NAN, 2.0]],
    ),
    "doubles with NaN and signed zero": (
        [pa.float64()] * 3,
        [[NAN, 0.0, 1e308, None], [NAN, NEGATIVE_ZERO, math.inf, None], [-NAN, 0.0, NEGATIVE_ZERO, math.inf]],
    ),
    "strings": ([pa.string()] * 3, [["", "a", "A", None], ["", "a ", "a", "a"], ["a", "", "ä", None]]),
    "binary": (
        [pa.binary()] * 3,
        [[b"", b"\0", b"a", None], [b"\0", b"\0\0", b"", b"a"], [b"", b"a", b"\0", None]],
    ),
    "dates": ([pa.date32()] * 3, [[day(0), day(1), None], [day(1), day(1), day(2)], [day(1), day(0), None]]),
    "instants": (
        [pa.timestamp("us", "UTC")] * 3,
        [
            [instant(0), instant(1), None],
            [instant(1), instant(2), instant(1)],
            [instant(1), None, instant(3)],
        ],
    ),
    "local times": (
        [pa.timestamp("us")] * 3,
        [[instant(n).replace(tzinfo=None) for n in part] for part in ([0, 1, 2], [1, 1, 3], [1, 2, 4])],
    ),
    "booleans": ([pa.bool_()] * 3, [[True, False, None, True], [True, None, True], [True, False]]),
}


KEYED = "SELECT a.id AS p, b.id AS q, c.id AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k"


def same(value: Any) -> Any:
    """A key as the join sees it: one NaN, one zero, numbers by value."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def fill_keys(lab: "Lab", name: str) -> "Counter[Any]":
    """Streams with keys of these types, in two epochs, and their join by definition."""
    kinds, values = KEYS[name]
    inputs = []
    for stream, kind, keys in zip("abc", kinds, values, strict=True):
        table = pa.table({"k": pa.array(keys, kind), "id": pa.array(range(len(keys)), pa.int64())})
        lab.stream(stream, table.slice(0, 2), table.slice(2))
        inputs.append(table.to_pylist())
    joined = join(inputs, lambda _, row: same(row["k"]))
    wanted = Counter(tuple(part["id"] for part in row) for row in joined)
    assert wanted
    return wanted


@pytest.mark.parametrize("name", ["integer and decimals", "doubles with NaN and signed zero"])
def test_keys_of_a_stream(lab: "Lab", name: str) -> None:
    wanted = fill_keys(lab, name)
    lab.run(KEYED, processors=2)
    assert lab.results() == wanted


@pytest.mark.parametrize("name", KEYS)
def test_every_keyable_type(lab: "Lab", name: str) -> None:
    """Spark makes the wire rows, as it does in an epoch; the engine then runs without it."""
    wanted = fill_keys(lab, name)
    frames = {one: lab.spark.read.parquet(str(lab.directory / "data" / one)) for one in "abc"}
    plan = plan_view(View.sql(KEYED), {one: columns_of(frame) for one, frame in frames.items()})
    wire = bind(plan, frames, 8)
    sink = ListSink(str(lab.directory / "staging"))
    config = EngineConfig(2, 8, str(lab.tier))
    engine = Engine(config, wire.graph, "q", Storage(str(lab.checkpoint)), sink, Journal(None))
    for epoch, batch in enumerate(wire.stream.toArrow().to_batches(max_chunksize=4)):
        engine.run_epoch(LocalCluster(wire.graph, batch), epoch)
    shutil.rmtree(lab.tier)
    shutil.rmtree(lab.directory / "staging")
    assert Counter(sink.rows()) == wanted


def test_composite_keys_match_in_every_part(lab: "Lab") -> None:
    """A null in any part matches nothing; the parts do not run together ("a", "bc") and ("ab", "c")."""
    rows = [
        ("a", "bc", 1),
        ("ab", "c", 1),
        ("a", "bc", 2),
        (None, "bc", 1),
        ("a", None, 1),
        ("a", "bc", None),
    ]
    columns = list(zip(*rows, strict=True))
    for name, kind in zip("abc", (pa.int32(), pa.int64(), pa.decimal128(6, 1)), strict=True):
        lab.stream(
            name,
            pa.table(
                {
                    "s": pa.array(columns[0]),
                    "t": pa.array(columns[1]),
                    "n": pa.array(
                        [None if one is None else Decimal(one) for one in columns[2]], pa.decimal128(6, 1)
                    )
                    if pa.types.is_decimal(kind)
                    else pa.array(columns[2], kind),
                    "id": pa.array(range(len(rows)), pa.int64()),
                }
            ),
        )
    on = " AND ".join(f"a.{part} = b.{part} AND b.{part} = c.{part}" for part in "stn")
    lab.run(f"SELECT a.id AS p, b.id AS q, c.id AS r FROM a, b, c WHERE {on}", processors=3)
    assert lab.results() == Counter([(0, 0, 0), (1, 1, 1), (2, 2, 2)])


def test_state_outlives_a_change_of_the_sessions_time_zone(lab: "Lab") -> None:
    """Instants are kept as instants: a restart in another zone reads the old runs and joins with them."""
    for name in "abc":
        lab.stream(
            name, pa.table({"k": pa.array([instant(0)], pa.timestamp("us", "UTC")), "at": [instant(1)]})
        )
    sql = "SELECT a.at AS p, b.at AS q, c.k AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
    zone = lab.spark.conf.get("spark.sql.session.timeZone")
    try:
        lab.spark.conf.set("spark.sql.session.timeZone", "UTC")
        lab.run(sql, processors=2)
        lab.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        for name in "ab":
            lab.stream(name, *lab.tables[name])
        lab.run(sql, processors=2)
    finally:
        lab.spark.conf.set("spark.sql.session.timeZone", zone)
    assert lab.results() == Counter({(instant(1), instant(1), instant(0)): 4})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("INTERVAL '1' YEAR", "interval year"),
        ("parse_json('{}')", "variant"),
        ("array(named_struct('v', parse_json('1')))", "variant"),
        ("NULL", "no type"),
    ],
)
def test_a_type_that_state_cannot_carry_is_refused_by_name(lab: "Lab", value: str, kind: str) -> None:
    source = lab.spark.readStream.format("rate").load().selectExpr("value AS k", f"{value} AS odd")
    with pytest.raises(ViewError, match=rf"a\.odd .*{kind}.*cast it") as caught:
        lab.start("SELECT a.odd FROM a, b WHERE a.k = b.k", sources={"a": source, "b": source})
    assert "\n" not in str(caught.value)
    assert not lab.checkpoint.exists()
