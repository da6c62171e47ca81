"""The variants of `bench spill`: shares of the memory that is needed, with early or deferred results."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.errors import JobError

FULL, HALF, FIFTH = "spillway-1x", "spillway-1/2", "spillway-1/5"
SHARES = (2, 5, 20)
DEFERRED: tuple[int, ...] = (5, 20)
"""The shares that also run with deferred results."""


@dataclass(frozen=True, slots=True)
class SpillVariant:
    """One budget: the needed memory over `divisor`; 0 is no budget."""

    name: str
    divisor: int
    results: str | None = None
    """The key of a job's `[run]` table; None: as the engine does by itself."""


def spill_variants(shares: Sequence[int], deferred: Sequence[int]) -> tuple[SpillVariant, ...]:
    """Enough memory first, then each share with early results, then those with deferred results."""
    for option, divisors in (("--shares", shares), ("--deferred", deferred)):
        wrong = [divisor for divisor in divisors if divisor < 1]
        if wrong or len(set(divisors)) < len(divisors):
            raise JobError(f"bench spill: {option} {','.join(map(str, divisors))}: give each divisor once")
    return (
        SpillVariant(FULL, 0),
        *(SpillVariant(f"spillway-1/{divisor}", divisor) for divisor in shares),
        *(SpillVariant(f"spillway-1/{divisor}-deferred", divisor, "deferred") for divisor in deferred),
    )
