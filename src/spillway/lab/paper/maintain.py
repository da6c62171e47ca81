"""The maintenance experiments of the dissertation: figures 10.8 to 10.15, 11.7 to 11.12, 11.14, table 11.3.

There: relations of a million rows, Oracle on three to four machines. Here: relations of 100,000 rows (a tenth
of that with `quick`), PostgreSQL servers on this machine. Join columns have indexes only in chapter 11.
Figure 11.13 is a drawing of the view of 11.14. `maintain_run` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass

from spillway.lab.paper.experiment import experiment_of

MEASURED, ESTIMATED = "measured", "estimated"


@dataclass(frozen=True, slots=True)
class MaintainExperiment:
    """A figure's name and axes."""

    name: str
    title: str
    x_label: str
    y_label: str = "maintenance time (s)"


_EXPERIMENTS = (
    MaintainExperiment("10.8", "Batching a small number of updates of one source", "updates"),
    MaintainExperiment(
        "10.9", "Sequential over batch maintenance", "updates", "sequential divided by batch time"
    ),
    MaintainExperiment("10.10", "Batching a large number of updates of one source", "updates"),
    MaintainExperiment("10.11", "A small number of updates of six sources", "updates"),
    MaintainExperiment("10.12", "A large number of updates of six sources", "updates"),
    MaintainExperiment("10.13", "The join ratio, 200 updates of six sources", "join ratio"),
    MaintainExperiment(
        "10.14", "The distribution of 1,000 updates", "changed sources", "batch divided by conditional time"
    ),
    MaintainExperiment(
        "10.15", "Network delay (added for the bytes that travelled)", "ms per 64 bytes", "seconds"
    ),
    MaintainExperiment("11.7", "Best and worst plans by estimate, 2,000 updates", "view"),
    MaintainExperiment(
        "11.8", "Cost function of one source by regression", "keys of the query", "query time (s)"
    ),
    MaintainExperiment("11.9", "Estimated and measured batch plans", "updates"),
    MaintainExperiment("11.10", "Estimated and measured grouping plans", "updates"),
    MaintainExperiment("11.11", "Batch against grouping plans, two edges of join ratio 50", "plan"),
    MaintainExperiment(
        "11.12", "Batch plans with 5 ms per value (added for the values that travelled)", "plan", "seconds"
    ),
    MaintainExperiment("11.14", "Best batch and grouping plans of six relations", "updates"),
    MaintainExperiment(
        "table-11.3", "Search: time and quality by plans kept, 9 nodes and 12 edges", "plans kept",
        "relative to enumeration",
    ),
)  # fmt: skip
MAINTAIN_FIGURES = {experiment.name: experiment for experiment in _EXPERIMENTS}


def maintain_experiment(name: str) -> MaintainExperiment:
    return experiment_of(name, MAINTAIN_FIGURES)
