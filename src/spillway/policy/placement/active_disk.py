"""Active-disk (WPI-CS-TR-05-04, section 6; Liu's dissertation, 6.3): the least productive processor spills.

As lazy-disk while memory is unbalanced. When it is balanced, processors are compared by their average
productivity rate: results of the sampled epochs over the number of their groups. If the best has more than
`productivity_threshold` times the rate of the worst, the worst has to spill its least productive groups. That
makes room, and the pairwise balance then fills it with productive groups of others.

What is spilled this way never exceeds what the query needs beyond the memory of the cluster: more would
leave memory unused. What it needs is given, or estimated from how far its input is (`need`).
"""

from dataclasses import dataclass

from spillway.errors import JobError
from spillway.model import group_set
from spillway.policy.placement.lazy_disk import LazyDiskParameters, lazy_disk
from spillway.policy.placement.need import estimated_need
from spillway.policy.placement.pairwise_memory import ends, is_unbalanced, resident_groups, span_is_over
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import ForcedSpill, Suggestions


@dataclass(frozen=True, slots=True)
class ActiveDiskParameters(LazyDiskParameters):
    productivity_threshold: float = 2.0
    """Best over worst average productivity rate, above which the worst spills (lambda, figure 6.19)."""
    spill_share: float = 0.3
    """How much of a processor's state one forced spill frees: as a spill of its own (figure 6.3)."""
    query_bytes: int | None = None
    """All state that the query will have (M_query), if known; None: it is estimated."""
    input_rows: int | None = None
    """Rows of all inputs together, if known: for the estimate."""
    minimum_fill: float = 0.5
    """Ours: while memory is emptier than this nobody is short of it, and nothing is forced out."""

    def __post_init__(self) -> None:
        LazyDiskParameters.__post_init__(self)
        if self.productivity_threshold < 1:
            raise JobError(
                f"[run.policy] productivity_threshold = {self.productivity_threshold}: must be at least 1"
            )
        if not 0 < self.spill_share <= 1:
            raise JobError(f"[run.policy] spill_share = {self.spill_share}: must be above 0 and at most 1")
        if not 0 <= self.minimum_fill <= 1:
            raise JobError(f"[run.policy] minimum_fill = {self.minimum_fill}: must be between 0 and 1")
        if self.query_bytes is not None and self.query_bytes < 0:
            raise JobError(f"[run.policy] query_bytes = {self.query_bytes}: must not be negative")
        if self.input_rows is not None and self.input_rows < 1:
            raise JobError(f"[run.policy] input_rows = {self.input_rows}: must be at least 1")


def active_disk(snapshot: PlacementSnapshot, parameters: ActiveDiskParameters) -> Suggestions:
    lazy = lazy_disk(snapshot, parameters)
    if lazy.moves or not span_is_over(snapshot, parameters.minimum_span_seconds):
        return lazy
    pair = ends(snapshot)
    if pair is None or is_unbalanced(*pair, parameters):
        return lazy
    spill = _forced_spill(snapshot, parameters)
    return lazy if spill is None else Suggestions(lazy.moves, (spill,), lazy.relieved)


def spill_allowance(snapshot: PlacementSnapshot, parameters: ActiveDiskParameters) -> int:
    """How much may still be forced out: need minus memory of the cluster, minus what was forced before."""
    limits = [processor.state_limit_bytes for processor in snapshot.processors]
    cluster = sum(limit for limit in limits if limit is not None)
    if None in limits:
        return 0
    need = parameters.query_bytes
    if need is None:
        state = sum(group.total_bytes for group in snapshot.groups)
        need = estimated_need(state, snapshot.progress, parameters.input_rows)
    return max(0, need - cluster - snapshot.forced_bytes)


def productivity_rate(snapshot: PlacementSnapshot, processor: int) -> float:
    """Results of the sampled epochs per group of the processor."""
    groups = snapshot.groups_of(processor)
    return sum(group.sampled_results for group in groups) / max(1, len(groups))


def _forced_spill(snapshot: PlacementSnapshot, parameters: ActiveDiskParameters) -> ForcedSpill | None:
    rates = {
        processor.processor: productivity_rate(snapshot, processor.processor)
        for processor in snapshot.processors
        if snapshot.groups_of(processor.processor)
    }
    if len(rates) < 2:
        return None
    worst = min(rates, key=lambda processor: (rates[processor], processor))
    best = max(rates.values())
    if best <= parameters.productivity_threshold * rates[worst]:
        return None
    victim = snapshot.processor(worst)
    if victim.fill < parameters.minimum_fill:
        return None
    chosen = _victims(snapshot, victim, parameters)
    if not chosen:
        return None
    size = sum(group.bytes for group in chosen)
    reason = f"productivity: {rates[worst]:.1f} results per group, the best processor has {best:.1f}"
    return ForcedSpill(worst, group_set(group.group for group in chosen), size, reason)


def _victims(
    snapshot: PlacementSnapshot, victim: ProcessorStatistics, parameters: ActiveDiskParameters
) -> list[PlacedGroup]:
    """The least productive groups, about the wanted share, never more than is allowed."""
    groups = resident_groups(snapshot, victim.processor)
    wanted = sum(group.bytes for group in groups) * parameters.spill_share
    allowed = spill_allowance(snapshot, parameters)
    chosen, taken = [], 0
    for group in sorted(
        groups, key=lambda group: (not group.mature, group.productivity, -group.bytes, group.group)
    ):
        if taken >= wanted:
            break
        if taken + group.bytes <= allowed:
            chosen.append(group)
            taken += group.bytes
    return chosen
