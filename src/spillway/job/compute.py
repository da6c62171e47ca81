"""The table `[compute]`: how a view over stored relations is computed, and where its result may go."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated

from spillway.errors import JobError
from spillway.job.keys import Key, check_values, refuse_unknown
from spillway.job.kinds import ByteSize, KeyPlace, OneOf, RealNumber, TableOf, WholeNumber
from spillway.job.sources import SinkSpec

if TYPE_CHECKING:
    from spillway.compute import ComputeConfig

SPARK_DEFAULTS = {
    "spark.scheduler.mode": "FAIR",  # segments run side by side
    "spark.driver.memory": "4g",  # hash tables live in the JVM here
    "spark.buffer.pageSize": "1m",  # the smallest hash table; the default is 32 MB
    "spark.sql.adaptive.enabled": "true",  # for Spark's own plan; our trees run without it
}
"""Settings with which a session for computing starts, unless the job file says otherwise."""
COMPUTE = "[compute]"
SINKS = ("parquet", "delta", "count")
MODES = ("error", "overwrite")


def _ways() -> tuple[str, ...]:
    from spillway.compute import WAYS

    return WAYS


def _trees() -> tuple[str, ...]:
    from spillway.compute.trees import ALGORITHMS, CHOSEN

    return (CHOSEN, *ALGORITHMS)


@dataclass(frozen=True, slots=True)
class ComputeTable:
    """How `spillway compute` computes the view."""

    way: Annotated[
        str,
        Key(
            OneOf(_ways),
            "`auto`: a join tree of Spillway where it should be clearly faster, else Spark's own plan. "
            "`tree`: never Spark's own plan. `spark`: always Spark's own plan.",
        ),
    ] = "auto"
    tree: Annotated[
        str, Key(OneOf(_trees), "A shape of join trees, or `chosen`: the cheapest tree of all shapes.")
    ] = "chosen"
    memory_bytes: Annotated[
        int | None,
        Key(
            ByteSize(),
            "Memory for all hash tables, or columns, that are needed together. What does not fit is written "
            "and read back.",
            name="memory",
            unset="two fifths of the driver's heap",
        ),
    ] = None
    processors: Annotated[
        int | None, Key(WholeNumber(1), "Cores that the cost model counts with.", unset="Spark's cores")
    ] = None
    sample: Annotated[
        float | None,
        Key(
            RealNumber(above=0, maximum=1),
            "The share of rows that statistics look at.",
            unset="what a small part of the expected time allows",
        ),
    ] = None
    rows: Annotated[
        Mapping[str, float],
        Key(
            TableOf(RealNumber(minimum=0)),
            "Rows of relations, by alias: `rows = { orders = 1e6 }`.",
            unset="from statistics",
        ),
    ] = field(default_factory=dict)
    selectivity: Annotated[
        Mapping[str, float],
        Key(
            TableOf(RealNumber(minimum=0, maximum=1)),
            'Selectivities of joins, by two aliases: `selectivity = { "orders parts" = 1e-5 }`.',
            unset="from statistics",
        ),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_values(self, COMPUTE)

    def config(self) -> "ComputeConfig":
        """What it says, for the package `compute`, which is loaded only now."""
        from spillway.compute import ComputeConfig

        return ComputeConfig(**{field.name: getattr(self, field.name) for field in fields(self)})


def check_sink(sink: SinkSpec) -> None:
    """Refuse a sink that a computed view cannot be written to."""
    if sink.format not in SINKS:
        raise JobError(f'[sink] format = "{sink.format}": a computed view goes to {", ".join(SINKS)}')
    if sink.format != "count" and sink.path is None:
        raise JobError('[sink] has no path; for example path = "out"')
    refuse_unknown(sink.options, ("mode",), "[sink] options")
    OneOf(MODES).parse(sink.options.get("mode", MODES[0]), KeyPlace("[sink]", "mode"))
