"""Figures of the literature, run on the real engine and drawn with the same axes.

Contract: a figure says which document and section it repeats, and what is expected. Start with `registry`,
then `reproduction`; an experiment is in the file of its family (`placement`, `tree`, `compute`, `maintain`).
"""

from spillway.lab.paper.registry import FIGURES
from spillway.lab.paper.reproduction import Reproduction, reproduce

__all__ = ["FIGURES", "Reproduction", "reproduce"]
