"""The experiments of figures 6.3 to 6.6 of the dissertation (6.1.4; figures 9 to 12 of the report of 2005).

There: one machine, a three-way join, 300 partitions, a tuple range of 30,000, a row per 30 ms and stream for
50 minutes (100,000 rows), spills above 200 MB. Here: the same rows, but as fast as they are taken, and less
memory, because a row takes less. Time is the arrival time of the rows: one row per 30 ms.

`quick` keeps the proportions (ranges per run, share of the state that fits) and takes fewer, wider rows.
"""

from dataclasses import dataclass, replace

from spillway.errors import JobError
from spillway.workload.options import parse_options
from spillway.workload.workload import Workload

STREAMS = ("a", "b", "c")
VIEW = (
    "SELECT a.k AS k, a.id AS x, b.id AS y, c.id AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k "
    "WHERE a.p <> b.p AND b.p <> c.p"
)
"""The payloads, all different, are state that must be looked at; the results themselves are narrow."""
ROW_SECONDS = 0.03
PARTITIONS = 300
MIXED_RATES = "4:1/3,2:1/3,1:1/3"
EQUAL_RATES = "3"
LEAST, MOST, ALL_MEMORY = "push-30% | less-productive", "push-30% | more-productive", "All-Mem"


@dataclass(frozen=True, slots=True)
class Variant:
    """One line of a figure."""

    label: str
    spill: str
    spill_share: float
    has_budget: bool = True


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    title: str
    draws_memory: bool
    """Whether the vertical axis is memory, not results."""
    join_ratio: str
    variants: tuple[Variant, ...]
    rows: int = 100_000
    """Per stream."""
    tuple_range: int = 30_000
    width_bytes: int = 400
    epochs: int = 25
    memory_bytes: int = 48 << 20
    groups: int = PARTITIONS

    @property
    def rows_per_trigger(self) -> int:
        return -(-self.rows // self.epochs)

    def options(self, stream: str) -> dict[str, str]:
        """The options of one stream's source."""
        return {
            "stream": stream,
            "rows": str(self.rows),
            "rowsPerTrigger": str(self.rows_per_trigger),
            "tupleRange": str(self.tuple_range),
            "joinRatio": self.join_ratio,
            "partitions": str(PARTITIONS),
            "width": str(self.width_bytes),
        }

    def workload(self) -> Workload:
        return replace(parse_options(self.options(STREAMS[0])).workload, streams=STREAMS)


_SHARES = (
    Variant(ALL_MEMORY, "none", 0.3, has_budget=False),
    *(Variant(f"{percent}%-push", "random", percent / 100) for percent in (10, 30, 50, 100)),
)
_PRODUCTIVITY = (Variant(LEAST, "least-productive", 0.3), Variant(MOST, "most-productive", 0.3))
_EXPERIMENTS = (
    Experiment("6.3", "Percentage of states pushed in each adaptation", False, EQUAL_RATES, _SHARES),
    Experiment("6.4", "Memory usage vs. percentage pushed", True, EQUAL_RATES, _SHARES),
    Experiment("6.5", "Throughput-oriented spill: various join rates", False, MIXED_RATES, _PRODUCTIVITY),
    Experiment("6.6", "Throughput-oriented spill: similar join rates", False, EQUAL_RATES, _PRODUCTIVITY),
)


def experiment(name: str, *, quick: bool = False) -> Experiment:
    found = next((one for one in _EXPERIMENTS if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in _EXPERIMENTS)
        raise JobError(f"there is no figure {name}; known are {known}")
    if quick:
        return replace(
            found, rows=20_000, tuple_range=6_000, width_bytes=800, epochs=8, memory_bytes=19 << 20
        )
    return found
