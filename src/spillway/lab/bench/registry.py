"""The benchmarks by name: what each compares, and what it should show."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Benchmark:
    name: str
    compares: str
    seed: str
    """The publication that the question comes from."""
    section: str
    expected: str


_ALL = (
    Benchmark(
        "join",
        "a three-way join with Spark's own joins, DuckDB, Flink and Pathway",
        "Liu, dissertation, 2005",
        "5.2.4",
        "at least 4 times Spark's rows per second, with less memory",
    ),
    Benchmark(
        "tree",
        "a chain of three joins with Spark's own joins and DuckDB",
        "Liu, SIGMOD, 2006",
        "5",
        "at least 4 times Spark's rows per second, with less memory",
    ),
    Benchmark(
        "latency",
        "the time from a file's arrival to its visible results, with Spark's own join",
        "Karimov et al., ICDE, 2018",
        "event-time latency",
        "at 10,000 rows per second, a 99th percentile below Spark's median",
    ),
    Benchmark(
        "epoch",
        "tiny epochs over a large state, and the growth of equal ones",
        "our own question",
        "design/epoch-cost",
        "the last ten of 100 epochs take at most 1.1 times as long as epochs 11 to 20",
    ),
    Benchmark(
        "start",
        "from the start of the command to the first result",
        "our own question",
        "design/epoch-cost",
        "at most 3 s after bare PySpark's first Python job",
    ),
    Benchmark(
        "spill",
        "all, half, a fifth and a twentieth of the memory, with Spark's RocksDB store",
        "Liu, dissertation, 2005",
        "6.1.4",
        "a run with a fifth of the memory ends before Spark's with RocksDB, in 2.5 times the processor time",
    ),
    Benchmark(
        "scarce",
        "a tree of joins of TPC-H over streams, with enough memory and with 24 MB per processor",
        "TPC-H",
        "Q9",
        "exact, and at most 5 times the time of enough memory",
    ),
    Benchmark(
        "relocation",
        "moves of groups, and a slow processor",
        "Liu, dissertation, 2005; Flux, 2002",
        "6.2.2",
        "little throughput lost to moves; balance gives what the slow one loses",
    ),
    Benchmark(
        "compute",
        "joins of 8 to 32 stored relations with Spark's plans and DuckDB",
        "Liu, dissertation, 2005",
        "3.4.2",
        "segmented bushy trees faster than right-deep ones, and no slower than Spark",
    ),
    Benchmark(
        "tpch",
        "joins of TPC-H with Spark's own plan, statistics included",
        "TPC-H",
        "Q3, Q9",
        "at most 1.15 times Spark's time",
    ),
    Benchmark(
        "maintain",
        "maintenance strategies over PostgreSQL or Delta",
        "Liu, dissertation, 2005",
        "10.5",
        "conditional grouping sends the fewest queries, and is ahead with several changed sources",
    ),
)
BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType({benchmark.name: benchmark for benchmark in _ALL})
