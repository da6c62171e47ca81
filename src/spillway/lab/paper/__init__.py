"""Figures of the literature, run on the real engine and drawn with the same axes. To add one, write its entry
in `registry` and its experiment in the family's file (`placement`, `tree`, `compute`, `maintain`). Start with
`reproduction`.
"""

from spillway.lab.paper.registry import FIGURES
from spillway.lab.paper.reproduction import Reproduction, reproduce

__all__ = ["FIGURES", "Reproduction", "reproduce"]
