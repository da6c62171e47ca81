"""Random Parquet files of every type that scans read, in the forms in which writers leave them."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Chance = random.Random


def whole(bits: int) -> Callable[[Chance], int]:
    limit = 1 << (bits - 1)
    edges = (-limit, limit - 1, 0, 1, -1)
    return lambda chance: chance.choice([*edges, chance.randrange(-limit, limit), chance.randrange(-9, 9)])


def number(chance: Chance) -> float:
    edges = (math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, 1.5, -1.5, 5e-324, 1.7e308, 0.1)
    return chance.choice([*edges, chance.uniform(-5, 5)])


def decimal(precision: int, scale: int) -> Callable[[Chance], Decimal]:
    limit = 10**precision

    def value(chance: Chance) -> Decimal:
        edges = (limit - 1, 1 - limit, 0, 1, -1, 127, 128, -128, -129, 255, 256)
        unscaled = chance.choice([*edges, chance.randrange(1 - limit, limit), chance.randrange(-99, 99)])
        return Decimal(f"{max(1 - limit, min(limit - 1, unscaled))}e-{scale}")

    return value


def text(chance: Chance) -> str:
    letters = "abcXYZ 019%_\\äß€\U0001f600\0\n"
    return "".join(chance.choice(letters) for _ in range(chance.choice([0, 1, 3, 7, 8, 9, 31, 33, 70])))


def blob(chance: Chance) -> bytes:
    return chance.randbytes(chance.choice([0, 1, 3, 4, 7, 8, 12, 31, 32, 33, 63, 64, 100]))


def instant(chance: Chance) -> int:
    return chance.choice([0, -1, 1_700_000_000_123_456, chance.randrange(-(10**17), 10**17)])


TYPES: dict[str, tuple[pa.DataType, Callable[[Chance], Any]]] = {
    "boolean": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "tinyint": (pa.int8(), whole(8)),
    "smallint": (pa.int16(), whole(16)),
    "int": (pa.int32(), whole(32)),
    "bigint": (pa.int64(), whole(64)),
    "float": (pa.float32(), lambda chance: chance.choice([number(chance), 0.25, math.nan])),
    "double": (pa.float64(), number),
    "decimal(9,2)": (pa.decimal128(9, 2), decimal(9, 2)),
    "decimal(18,0)": (pa.decimal128(18, 0), decimal(18, 0)),
    "decimal(19,3)": (pa.decimal128(19, 3), decimal(19, 3)),
    "decimal(38,10)": (pa.decimal128(38, 10), decimal(38, 10)),
    "string": (pa.string(), text),
    "binary": (pa.binary(), blob),
    "date": (pa.date32(), lambda chance: chance.choice([0, -1, 19_000, -800_000, 2_932_896])),
    "timestamp": (pa.timestamp("us", "UTC"), instant),
    "timestamp_ntz": (pa.timestamp("us"), instant),
}


def array(chance: Chance, type_: str, rows: int, *, nulls: float = 0.15) -> pa.Array:
    kind, value = TYPES[type_]
    return pa.array([None if chance.random() < nulls else value(chance) for _ in range(rows)], kind)


@dataclass(frozen=True, slots=True)
class Source:
    """Files below a directory, and the columns that they are declared to have."""

    root: Path
    columns: dict[str, str]
    files: list[str]

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{name}` {type_}" for name, type_ in self.columns.items())

    def frame(self, spark: "SparkSession", files: Sequence[str]) -> "DataFrame":
        reader = spark.read.schema(self.ddl).option("basePath", str(self.root))
        return reader.parquet(*files)


PARTITIONS: dict[str, list[str]] = {
    "string": ["a", "007", "x y", "a%3Db", "__HIVE_DEFAULT_PARTITION__", "2024-01-01"],
    "int": ["0", "-5", "2147483647", "__HIVE_DEFAULT_PARTITION__"],
    "bigint": ["1", "9223372036854775807"],
    "date": ["2024-02-29", "1969-12-31", "__HIVE_DEFAULT_PARTITION__"],
    "double": ["1.5", "2"],
}
"""Directories that Spark reads as values of a type; doubles are left to it."""


def write_source(chance: Chance, root: Path, columns: dict[str, str], partition: str | None) -> Source:
    """A few files: each has most of the columns, in any order and case, in one of several physical forms."""
    files = []
    spelt = partition.upper() if partition is not None and chance.random() < 0.3 else partition
    for number_ in range(chance.choice([1, 2, 3])):
        directory = root
        declared = dict(columns)
        if partition is not None:
            type_ = declared.pop(partition)
            directory = root / f"{spelt}={chance.choice(PARTITIONS[type_])}"
            if chance.random() < 0.2:
                declared[partition] = type_  # in the file, too; the directory wins
        rows = chance.choice([1, 5, 40])
        names = [name for name in declared if name == "k" or chance.random() < 0.85]
        chance.shuffle(names)
        table = pa.table(
            {
                (name.upper() if chance.random() < 0.3 else name): array(chance, declared[name], rows)
                for name in ["unread", *names]
                if name in declared
            }
        )
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{number_:02d}.parquet"
        write_file(chance, table, path)
        files.append(str(path))
    return Source(root, columns, files)


def write_file(chance: Chance, table: pa.Table, path: Path) -> None:
    form = chance.choice(["plain", "plain", "large", "dictionary", "millis", "int96", "integers", "old"])
    options: dict[str, Any] = {"row_group_size": chance.choice([3, 7, 100])}
    if form == "large":
        table = converted(table, lambda kind: pa.large_string() if pa.types.is_string(kind) else kind)
    elif form == "dictionary":
        table = converted(
            table, lambda kind: pa.dictionary(pa.int32(), kind) if pa.types.is_string(kind) else kind
        )
    elif form == "millis":
        options |= {"coerce_timestamps": "ms", "allow_truncated_timestamps": True}
    elif form == "int96":
        options |= {"use_deprecated_int96_timestamps": True}
    elif form == "integers":
        options |= {"store_decimal_as_integer": True}
    elif form == "old":
        options |= {
            "version": "1.0",
            "data_page_version": "1.0",
            "store_schema": False,
            "write_statistics": False,
        }
    pq.write_table(table, path, compression=chance.choice(["none", "snappy", "zstd", "gzip"]), **options)


def converted(table: pa.Table, kind: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
    return table.cast(pa.schema([field.with_type(kind(field.type)) for field in table.schema]))
