"""A run as one page: journal -> epochs -> series -> SVG -> HTML.

Contract: it reads only the journal and the identity of a checkpoint. Known limit: the journal is not needed
for correctness, so an epoch whose driver was killed between commit and journal is missing from it; the page
says how many are. Start with `page`.
"""

from spillway.report.checkpoint_report import write_report
from spillway.report.svg import draw_svg
from spillway.report.tree_drawing import draw_tree

__all__ = ["draw_svg", "draw_tree", "write_report"]
