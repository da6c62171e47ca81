"""The table `[run]`: how a view runs over streams."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from spillway.errors import JobError
from spillway.job.environment import Expanded, kept_secret
from spillway.job.keys import Key, check_values
from spillway.job.kinds import (
    ByteSize,
    Duration,
    FilePath,
    Flag,
    KeyPlace,
    ListOf,
    OneOf,
    OneOrList,
    RealNumber,
    Schema,
    WholeNumber,
    as_number,
    require_table,
)
from spillway.manager.files import milliseconds
from spillway.model import MINIMUM_BYTES
from spillway.policy import BY_HASH, EVEN, SHARE, TURNS, Distribution, distributed
from spillway.policy.placement import (
    LOAD_SIGNALS,
    NO_PLACEMENT,
    PLACEMENT_POLICIES,
    WALL,
    placement_policy,
)
from spillway.policy.spill import INACTIVE_EPOCHS, NO_SPILL, SPILL_POLICIES

RUN = "[run]"
UNTIL = EXHAUSTED, FOREVER = ("exhausted", "forever")
RESULTS = EARLY, DEFERRED = ("early", "deferred")
"""When results come."""


@dataclass(frozen=True, slots=True)
class PolicyParameters:
    """The parameters of a placement policy; its own dataclass says which."""

    type: str = "table of numbers and sizes"

    def parse(self, value: Any, place: KeyPlace) -> dict[str, object]:
        return {name: self._value(given) for name, given in require_table(value, place).items()}

    def _value(self, given: object) -> object:
        for convert in (int, float):
            if isinstance(given, Expanded) and not isinstance(number := as_number(given, convert), str):
                return number
        return kept_secret(given) if isinstance(given, str) else given

    def by_policy(self) -> dict[str, dict[str, Any]]:
        """The parameters of each policy with their defaults."""
        made = {name: make() for name, (_, make) in PLACEMENT_POLICIES.items()}
        return {name: asdict(defaults) for name, defaults in made.items()}  # type: ignore[call-overload]

    def schema(self) -> Schema:
        names = sorted({name for parameters in self.by_policy().values() for name in parameters})
        values = {name: _parameter_schema(name) for name in names}
        return {"type": "object", "properties": values, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How `spillway run` runs the view."""

    checkpoint: Annotated[
        str,
        Key(FilePath(), "Directory or URI of the state, the manifest and the journal.", example='"state"'),
    ]
    processors: Annotated[
        int, Key(WholeNumber(1), "How many processors hold the state. May change at a restart.")
    ] = 2
    groups: Annotated[
        int,
        Key(
            WholeNumber(1, 65_536),
            "Partition groups, the unit of spilling and relocation: many more than processors. "
            "Fixed for a checkpoint.",
        ),
    ] = 256
    memory_bytes: Annotated[
        int | None,
        Key(ByteSize(), "Memory of each processor for state and work.", name="memory", unset="no limit"),
    ] = None
    memory_each: Annotated[
        tuple[int, ...],
        Key(ListOf(ByteSize()), "A list gives each processor its own.", name="memory", unset="no limit"),
    ] = ()
    until: Annotated[
        str,
        Key(
            OneOf(UNTIL),
            "`exhausted`: process all available input, produce what is missing, stop. "
            "`forever`: go on as input arrives.",
        ),
    ] = EXHAUSTED
    trigger: Annotated[
        str | None,
        Key(
            Duration(),
            'Spark\'s processing-time trigger, for `until = "forever"`.',
            unset="as fast as possible",
        ),
    ] = None
    latency: Annotated[
        str,
        Key(
            Duration(),
            "How long an epoch of a live query over files should take: it takes what is there, but not more "
            "than it can do in this time. Works off a backlog in larger epochs. `trigger` and limits of "
            "sources win.",
        ),
    ] = "500ms"
    cleanup_latency: Annotated[
        str,
        Key(
            Duration(),
            "How long an epoch of clean-up should take: its results are then in the sink. The first one does "
            "no more than an epoch with input.",
        ),
    ] = "10s"
    epoch_rows: Annotated[
        int,
        Key(
            WholeNumber(1, unit="rows"),
            "Input rows of one processor in one epoch. A larger batch is split into several epochs.",
        ),
    ] = 500_000
    epoch_results: Annotated[
        int,
        Key(
            WholeNumber(1, unit="rows"),
            "Result rows of one processor in one epoch, so that a hot key cannot exhaust memory.",
        ),
    ] = 4_000_000
    results: Annotated[
        str,
        Key(
            OneOf(RESULTS),
            "`early`: results come as soon as their rows are in memory together, the others by clean-up. "
            "`deferred`: rows are only written, and all results come when the input has ended: faster when "
            'memory is scarce. Needs `until = "exhausted"`.',
        ),
    ] = EARLY
    spill: Annotated[
        str | None,
        Key(
            OneOf((*SPILL_POLICIES, NO_SPILL)),
            "Which groups leave memory first. `none` stops with an error instead of spilling.",
            unset='`"least-productive"` for one join, `"global-output-penalty"` for a tree of joins',
        ),
    ] = None
    spill_share: Annotated[
        float | None,
        Key(
            RealNumber(above=0, maximum=1),
            "How much of a processor's state one spill frees at least. If it is not given, a spill of one "
            "join also makes room for the next epoch.",
            unset="0.1; 0.3 with rotation",
        ),
    ] = None
    inactive_epochs: Annotated[
        int,
        Key(
            WholeNumber(0, unit="epochs"),
            "After this many epochs without rows, `least-recent` considers a group inactive.",
        ),
    ] = INACTIVE_EPOCHS
    history_weight: Annotated[
        float,
        Key(
            RealNumber(minimum=0, maximum=1),
            "How much an epoch's results still weigh in the next epoch, for `recent-history`.",
        ),
    ] = 0.7
    state_share: Annotated[
        float,
        Key(
            RealNumber(above=0, below=1),
            "The share of `memory` for state; the rest is working memory of an epoch.",
        ),
    ] = 0.8
    room_share: Annotated[
        float,
        Key(
            RealNumber(minimum=0, maximum=1),
            "While the view runs, groups with missing results return to memory until state fills this share "
            "of its part.",
        ),
    ] = 0.5
    restart_epochs: Annotated[
        int, Key(WholeNumber(0, unit="epochs"), "No policy moves groups in the first epochs after a start.")
    ] = 5
    rotation: Annotated[
        bool,
        Key(
            Flag(),
            "Suspended groups take turns in memory with their waiting input, instead of leaving results to "
            "clean-up; for input that never ends. Needs `memory`.",
        ),
    ] = False
    rotation_gap: Annotated[
        float | None,
        Key(
            RealNumber(minimum=0, unit="seconds"),
            "Time between two turns. Longer gives more rows per second, shorter less waiting.",
            unset="the duration of the last exchange",
        ),
    ] = None
    rotation_turns: Annotated[
        str,
        Key(
            OneOf(TURNS),
            "`share`: all processors take a turn together and exchange up to `spill_share` of their state. "
            "`group`: each by its own clock, one group at a time, as published for Flux.",
        ),
    ] = SHARE
    rotation_backlog_bytes: Annotated[
        int | None,
        Key(
            ByteSize(),
            "How much input may wait for the suspended groups of a processor before new input is held back.",
            name="rotation_backlog",
            unset="half of the memory for state",
        ),
    ] = None
    adapt: Annotated[
        str,
        Key(
            OneOf(tuple(PLACEMENT_POLICIES)),
            "The policy that moves groups between processors, or makes them spill for each other.",
        ),
    ] = NO_PLACEMENT
    policy: Annotated[
        Mapping[str, object],
        Key(PolicyParameters(), "Parameters of the policy `adapt`.", unset="the policy's own defaults"),
    ] = field(default_factory=dict)
    distribution: Annotated[
        Distribution,
        Key(
            OneOrList(OneOf((EVEN, BY_HASH)), ListOf(RealNumber(above=0))),
            "The first placement of the groups. A list gives the share of each processor.",
        ),
    ] = EVEN
    load_signal: Annotated[
        str,
        Key(
            OneOf(LOAD_SIGNALS),
            "What load policies measure. `wall`: the time in which a processor is not idle. `processor`: "
            "processor time, for more processors than cores.",
        ),
    ] = WALL
    buffer_bytes: Annotated[
        int,
        Key(
            ByteSize(),
            "How much input a slow processor may park.",
            name="buffer",
            unset="none",
        ),
    ] = 0
    row_seconds: Annotated[
        float,
        Key(
            RealNumber(minimum=0, unit="seconds"),
            "For experiments: the least time that a processor spends on a row.",
            name="emulate.row_seconds",
        ),
    ] = 0.0
    speeds: Annotated[
        tuple[float, ...],
        Key(
            ListOf(RealNumber(above=0)),
            "For experiments: the speed of each processor.",
            name="emulate.speeds",
            unset="1 for all",
        ),
    ] = ()
    lineage_one_in: Annotated[
        int,
        Key(
            WholeNumber(1, unit="rows"),
            "For a tree of joins: trace one row in this many to the groups that it passed through. "
            "1 traces every row.",
        ),
    ] = 1
    tier: Annotated[
        str | None,
        Key(
            FilePath(),
            "Directory of the memory tier.",
            unset="a tmpfs with enough room, else the system's temporary directory",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_values(self, RUN)
        placement_policy(self.adapt, self.policy)
        if self.processors > self.groups:
            raise JobError(
                f"{RUN} processors = {self.processors} is more than groups = {self.groups}: "
                "a processor without a group has nothing to do; raise groups"
            )
        distributed(self.distribution, self.groups, self.processors)
        _seconds("cleanup_latency", self.cleanup_latency)
        if self.latency_seconds <= 0:
            raise JobError(f'{RUN} latency = "{self.latency}": must be longer than nothing, such as "500ms"')
        for name, values in (("memory", self.memory_each), ("emulate.speeds", self.speeds)):
            if values and len(values) != self.processors:
                raise JobError(
                    f"{RUN} {name} has {len(values)} values for {self.processors} processors; "
                    "give one for each"
                )
        for size in (self.memory_bytes, *self.memory_each):
            if size is not None and size < MINIMUM_BYTES:
                raise JobError(
                    f"[run] memory = {size} bytes per processor is less than one epoch needs; "
                    f'give at least "{MINIMUM_BYTES >> 20}MB"'
                )
        if self.memory_bytes is not None and self.memory_each:
            raise JobError("[run] memory is given for all processors and for each; give one of them")
        if self.results == DEFERRED and self.until != "exhausted":
            raise JobError(
                f'{RUN} results = "{DEFERRED}" needs an end of the input; add until = "exhausted", or take '
                f'"{EARLY}"'
            )
        if self.results == DEFERRED and self.rotation:
            raise JobError(f'{RUN} results = "{DEFERRED}" keeps nothing in memory; leave rotation out')
        if self.rotation and self.memory_bytes is None and not self.memory_each:
            raise JobError(f'{RUN} rotation = true needs a memory limit; add memory = "64MB"')

    def is_deferred(self, *, splittable: bool) -> bool:
        """Whether all results come at the end of the input; refused if groups of the view must stay whole."""
        if self.results == DEFERRED and not splittable:
            raise JobError(
                f'{RUN} results = "{DEFERRED}": statistics with OVER are made as rows come; leave it out'
            )
        return self.results == DEFERRED

    @property
    def latency_seconds(self) -> float:
        return _seconds("latency", self.latency)

    @property
    def cleanup_seconds(self) -> float:
        return _seconds("cleanup_latency", self.cleanup_latency)


def _seconds(key: str, duration: str) -> float:
    try:
        return milliseconds(duration) / 1000
    except ValueError:
        raise JobError(
            f'{RUN} {key} = "{duration}": not a duration; write it like "500ms" or "2 seconds"'
        ) from None


def _parameter_schema(name: str) -> Schema:
    if name.endswith("_bytes"):
        return ByteSize().schema()
    return {"type": "integer" if name.endswith("_rows") else "number"}
