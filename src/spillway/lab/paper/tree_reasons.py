"""Why a strategy for trees is not as far ahead of another as expected, from the spills in the journals."""

from collections import Counter
from collections.abc import Sequence
from statistics import mean

from spillway.lab.paper.outcome import Outcome

LITTLE = 0.1
"""Shares that differ by less count as equal."""


def reasons(
    first: Sequence[Outcome], second: Sequence[Outcome], groups: int, ratio: float, wanted: float
) -> str:
    """One line about two strategies, each given by its outcomes for all seeds; a join has `groups` groups."""
    ours, theirs = _shares(first, groups), _shares(second, groups)
    same = mean(_overlap(left, right) for left, right in zip(first, second, strict=True))
    names = f"{first[0].variant.label} over {second[0].variant.label}"
    facts = (
        f"spilled groups by join {_percent(ours)} against {_percent(theirs)}, "
        f"{same:.0%} of the groups the same, "
        f"{_megabytes(first):.0f} MB against {_megabytes(second):.0f} MB"
    )
    return f"{names} is {ratio:.2f}, not {wanted:g}: {_reason(ours, theirs, same, first, second)} ({facts})"


def _reason(
    ours: Sequence[float],
    theirs: Sequence[float],
    same: float,
    first: Sequence[Outcome],
    second: Sequence[Outcome],
) -> str:
    if same > 1 - 2 * LITTLE:
        return "both ended nearly the same groups"
    if _megabytes(first) > (1 + LITTLE) * _megabytes(second):
        where = (
            "above, which the groups kept below had filled" if ours[0] < theirs[0] else "of the lowest join"
        )
        return f"it had to spill more, groups {where}"
    if ours[0] < theirs[0] - LITTLE:
        return "it kept groups of the lowest join, and results ended at the joins above instead"
    if ours[0] > theirs[0] + LITTLE:
        return "it ended groups of the lowest join, through which all results come"
    return "both ended about as many groups of each join, of about the same productivity"


def _shares(outcomes: Sequence[Outcome], groups: int) -> list[float]:
    counts = Counter(group // groups for outcome in outcomes for group in outcome.spilled_groups)
    whole = max(1, sum(counts.values()))
    return [counts[join] / whole for join in range(max(counts, default=0) + 1)]


def _overlap(first: Outcome, second: Outcome) -> float:
    ours, theirs = set(first.spilled_groups), set(second.spilled_groups)
    return len(ours & theirs) / max(1, len(ours | theirs))


def _megabytes(outcomes: Sequence[Outcome]) -> float:
    return mean(outcome.spilled_bytes for outcome in outcomes) / 1e6


def _percent(shares: Sequence[float]) -> str:
    return "/".join(f"{share:.0%}" for share in shares)
