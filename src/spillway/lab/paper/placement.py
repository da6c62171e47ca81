"""Figures 5.9, 5.10, 6.12 to 6.15 and 6.18 to 6.20 of the dissertation: where state is.

Processors are tasks of one Spark here. Spans between two adaptations (tau_m) are scaled with the run: a run
of 40 to 60 minutes takes about one here, so 45 seconds become one second. Figures 5.9, 6.12 and 6.13 ask what
something costs, so they show results by the clock: over arrival time every cost would be hidden. In 5.10
nothing is spilled: as in the dissertation, a run that needs more memory ends. In 6.19 and 6.20 the forced
spills of `active-disk` are bounded, as in the dissertation, by what the query needs beyond the memory of all
processors, estimated from the remaining rows; another line shows it without that bound. Known limit: on fewer
cores than processors they share the cores, so more of them are no faster; results over arrival time, memory
and what has to be cleaned up do not depend on that.

Figures 6.3 to 6.6 of the dissertation (6.1.4; figures 9 to 12 of the report of 2005): what to spill.

One machine, a three-way join, 300 partitions, a tuple range of 30,000, 50 minutes of arrivals.
"""

from dataclasses import replace

from spillway.lab.paper.experiment import ALL_MEMORY, LEAST, MOST, Axis, Experiment, Variant
from spillway.policy.spill import NO_SPILL

SPAN_SECONDS_PER_SECOND = 1 / 45
"""A span of 45 seconds in the dissertation is one second here."""
NO_RELOCATION, WITH_RELOCATION, LAZY, ACTIVE = "no-relocation", "with-relocation", "lazy-disk", "active-disk"
UNBOUNDED = "active-disk, no bound"
_ALTERNATING = "300s/600s:10"
_THIRDS = (4.0, 1.0, 1.0)
"""Two thirds of the partitions on the first of three processors."""


def _relocating(label: str, threshold: float, span_seconds: float) -> Variant:
    policy = {
        "relocation_threshold": threshold,
        "minimum_span_seconds": span_seconds * SPAN_SECONDS_PER_SECOND,
    }
    return Variant(label, has_budget=False, adapt="pairwise-memory", policy=policy, processors=2)


def _integrated(label: str, **policy: float) -> Variant:
    span = {"relocation_threshold": 0.8, "minimum_span_seconds": 45 * SPAN_SECONDS_PER_SECOND}
    return Variant(label, adapt=label.split(",")[0], policy=span | policy, processors=3)


_IN_MEMORY = Variant(ALL_MEMORY, has_budget=False, processors=2)
_MACHINES = tuple(Variant(f"M_{count}", processors=count) for count in range(1, 6))
_STAYING = Variant(NO_RELOCATION, processors=3, distribution=_THIRDS)
_LAZY_AND_ACTIVE = (
    _integrated(LAZY),
    _integrated(ACTIVE, productivity_threshold=2.0),
    _integrated(UNBOUNDED, productivity_threshold=2.0, query_bytes=1 << 40),
)
RELOCATION_EXPERIMENTS = (
    Experiment(
        "5.9",
        "Partitioning a query that needs little memory",
        Axis.RESULTS_BY_CLOCK,
        "1",
        tuple(replace(variant, has_budget=False) for variant in _MACHINES),
        rows=60_000,
        tuple_range=25_000,
        width_bytes=100,
        epochs=20,
        row_seconds=0.02,
    ),
    Experiment(
        "5.10",
        "Partitioning a memory-intensive query",
        Axis.RESULTS,
        "2",
        tuple(replace(variant, spill=NO_SPILL) for variant in _MACHINES),
        tuple_range=25_000,
        epochs=20,
        memory_bytes=48 << 20,
        row_seconds=0.02,
    ),
    Experiment(
        "6.12",
        "Varying the threshold that triggers relocation",
        Axis.RESULTS_BY_CLOCK,
        "3",
        (_IN_MEMORY, *(_relocating(f"{percent}%", percent / 100, 45) for percent in (50, 70, 90))),
        epochs=45,
        alternate=_ALTERNATING,
    ),
    Experiment(
        "6.13",
        "Varying the minimal span between relocations",
        Axis.RESULTS_BY_CLOCK,
        "3",
        (_IN_MEMORY, *(_relocating(f"{span} s", 0.9, span) for span in (15, 30, 45))),
        epochs=45,
        alternate=_ALTERNATING,
    ),
    Experiment(
        "6.14",
        "Memory with and without relocation",
        Axis.MEMORY_EACH,
        "3",
        (replace(_IN_MEMORY, label=NO_RELOCATION), _relocating(WITH_RELOCATION, 0.9, 15)),
        epochs=45,
        alternate=_ALTERNATING,
    ),
    Experiment(
        "6.15",
        "Throughput with and without relocation",
        Axis.RESULTS,
        "3",
        (
            replace(_STAYING, distribution=(3.0, 1.0, 1.0)),
            replace(_integrated(LAZY), label=WITH_RELOCATION, distribution=(3.0, 1.0, 1.0)),
        ),
        epochs=40,
        memory_bytes=72 << 20,
    ),
    Experiment(
        "6.18",
        "Lazy-disk against no relocation",
        Axis.RESULTS,
        "3",
        (_STAYING, replace(_integrated(LAZY), distribution=_THIRDS)),
        epochs=40,
        memory_bytes=40 << 20,
    ),
    Experiment(
        "6.19",
        "Lazy-disk against active-disk: join rates 4 and 1",
        Axis.RESULTS,
        "4:1/3,1:2/3",
        _LAZY_AND_ACTIVE,
        epochs=40,
        memory_bytes=32 << 20,
    ),
    Experiment(
        "6.20",
        "Lazy-disk against active-disk: tuple ranges differ too",
        Axis.RESULTS,
        "4:1/3:15000,1:2/3:45000",
        _LAZY_AND_ACTIVE,
        epochs=40,
        memory_bytes=32 << 20,
    ),
)
MIXED_RATES = "4:1/3,2:1/3,1:1/3"
EQUAL_RATES = "3"
_SHARES = (
    Variant(ALL_MEMORY, "none", 0.3, has_budget=False),
    *(Variant(f"{percent}%-push", "random", percent / 100) for percent in (10, 30, 50, 100)),
)
_PRODUCTIVITY = (Variant(LEAST, "least-productive", 0.3), Variant(MOST, "most-productive", 0.3))
SPILL_EXPERIMENTS = (
    Experiment("6.3", "Percentage of states pushed in each adaptation", Axis.RESULTS, EQUAL_RATES, _SHARES),
    Experiment("6.4", "Memory usage vs. percentage pushed", Axis.MEMORY, EQUAL_RATES, _SHARES),
    Experiment(
        "6.5", "Throughput-oriented spill: various join rates", Axis.RESULTS, MIXED_RATES, _PRODUCTIVITY
    ),
    Experiment(
        "6.6", "Throughput-oriented spill: similar join rates", Axis.RESULTS, EQUAL_RATES, _PRODUCTIVITY
    ),
)
