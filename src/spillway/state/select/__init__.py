"""Rows that are filtered and projected as they come: views of one input, and results between operators.

Contract: nothing is kept, so nothing is spilled, moved or cleaned up; groups only spread the work. Start with
`operator`.
"""

from spillway.state.select.operator import SelectOperator
from spillway.state.select.step import SelectStep

__all__ = ["SelectOperator", "SelectStep"]
