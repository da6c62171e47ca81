"""What a round did, as the journal keeps it: the names of the fields are on disk."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class RoundReport:
    """One round; times are in seconds."""

    round: int
    strategy: str
    updates: int
    delta_rows: int = 0
    queries: int = 0
    skipped_queries: int = 0
    keys_sent: int = 0
    rows_received: int = 0
    joined_rows: int = 0
    cut_seconds: float = 0.0
    query_seconds: float = 0.0
    maintain_seconds: float = 0.0
    apply_seconds: float = 0.0
    lag_seconds: float = 0.0
    """From the cut to the commit: how old the view was when it was committed."""
    freshness_seconds: float | None = None
    """From the oldest change of the round to its commit: how long a reader had to wait for it."""
    costs: list[tuple[int, int, int, float]] = field(default_factory=list)
    """Input, keys, key columns and seconds of every query."""
    net_rows: list[int] = field(default_factory=list)
    """By how many rows each input grew."""


@dataclass(slots=True, kw_only=True)
class RoundEntry(RoundReport):
    """A round as a line of the journal beside the store."""

    kind: str = "round"
    time: float
    """When it was committed, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class FailedRoundEntry:
    time: float
    error: str
    kind: str = "failed round"
