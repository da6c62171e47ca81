"""Figures of the literature, run on the real engine and drawn in their axes.

To add one: its entry in `catalogue`. Start there, then `experiment`.
"""

from spillway.lab.paper.catalogue import FIGURES, find_experiment
from spillway.lab.paper.comparison import compare, lines
from spillway.lab.paper.compute import COMPUTE_FIGURES, compute_experiment
from spillway.lab.paper.compute_run import run_compute_experiment
from spillway.lab.paper.drawing import draw_compute_figure, draw_figure, draw_maintain_figure
from spillway.lab.paper.maintain import MAINTAIN_FIGURES, maintain_experiment
from spillway.lab.paper.maintain_run import run_maintain_figure
from spillway.lab.paper.run import run_experiment
from spillway.lab.paper.tree import SEEDS, TREE_EXPERIMENTS, compare_strategies, tree_experiment, tree_lines
from spillway.lab.paper.tree_run import run_tree_experiment

__all__ = [
    "COMPUTE_FIGURES",
    "FIGURES",
    "MAINTAIN_FIGURES",
    "SEEDS",
    "TREE_EXPERIMENTS",
    "compare",
    "compare_strategies",
    "compute_experiment",
    "draw_compute_figure",
    "draw_figure",
    "draw_maintain_figure",
    "find_experiment",
    "lines",
    "maintain_experiment",
    "run_compute_experiment",
    "run_experiment",
    "run_maintain_figure",
    "run_tree_experiment",
    "tree_experiment",
    "tree_lines",
]
