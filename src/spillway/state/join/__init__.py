"""The symmetric m-way join: probe, production of results, clean-up.

Contract: every combination of rows appears exactly once over all epochs and the clean-up, whatever was
spilled. Start with `step`, then `probe`; `cleanup` produces what generations miss; `reference` is the
definition.
"""

from spillway.state.join.operator import JoinOperator
from spillway.state.join.step import JoinStep

__all__ = ["JoinOperator", "JoinStep"]
