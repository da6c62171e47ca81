"""How many random examples a test tries: a share of the number in Hypothesis's profile, never a number.

An everyday run names no profile. Costly tests try fewer examples there; `make nightly` tries many more.
"""

import os

from hypothesis import settings

EVERYDAY = "HYPOTHESIS_PROFILE" not in os.environ


def examples(part: int = 1, *, everyday: int = 1) -> int:
    """One in `part` of the profile's number, in everyday runs one in `everyday` of that, at least one."""
    return max(1, settings().max_examples // (part * (everyday if EVERYDAY else 1)))


def tries(part: int = 1, *, everyday: int = 1) -> settings:
    """Decorates a test whose examples are costly."""
    return settings(max_examples=examples(part, everyday=everyday))
