"""Figures 6.3 to 6.6 of the dissertation (6.1.4; figures 9 to 12 of the report of 2005): what to spill.

One machine, a three-way join, 300 partitions, a tuple range of 30,000, 50 minutes of arrivals.
"""

from spillway.figure.experiment import ALL_MEMORY, LEAST, MOST, Axis, Experiment, Variant

MIXED_RATES = "4:1/3,2:1/3,1:1/3"
EQUAL_RATES = "3"
_SHARES = (
    Variant(ALL_MEMORY, "none", 0.3, has_budget=False),
    *(Variant(f"{percent}%-push", "random", percent / 100) for percent in (10, 30, 50, 100)),
)
_PRODUCTIVITY = (Variant(LEAST, "least-productive", 0.3), Variant(MOST, "most-productive", 0.3))

SPILL_EXPERIMENTS = (
    Experiment("6.3", "Percentage of states pushed in each adaptation", Axis.RESULTS, EQUAL_RATES, _SHARES),
    Experiment("6.4", "Memory usage vs. percentage pushed", Axis.MEMORY, EQUAL_RATES, _SHARES),
    Experiment(
        "6.5", "Throughput-oriented spill: various join rates", Axis.RESULTS, MIXED_RATES, _PRODUCTIVITY
    ),
    Experiment(
        "6.6", "Throughput-oriented spill: similar join rates", Axis.RESULTS, EQUAL_RATES, _PRODUCTIVITY
    ),
)
