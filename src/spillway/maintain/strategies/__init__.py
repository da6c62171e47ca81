"""Maintenance strategies, one file each: from a view graph and the sizes of its deltas to a plan.

Contract: all strategies telescope the same sum over an order of the inputs. The term of input k joins its
delta with the inputs before k as they are after the round, and with the inputs after k as they were before
it. They differ in which queries share a trip to a source. Start with `registry`.
"""

from spillway.maintain.strategies.adjacent import adjacent_plan
from spillway.maintain.strategies.conditional import conditional_plan
from spillway.maintain.strategies.extended_batch import extended_batch_plan
from spillway.maintain.strategies.greedy import greedy_plan
from spillway.maintain.strategies.registry import STRATEGIES, plan_round

__all__ = [
    "STRATEGIES",
    "adjacent_plan",
    "conditional_plan",
    "extended_batch_plan",
    "greedy_plan",
    "plan_round",
]
