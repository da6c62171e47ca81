"""Statistics over frames of rows (`OVER`): rows wait until they are final, then each is answered once.

Contract: a group is never split into generations; it is suspended instead. Start with `step`.
"""

from spillway.state.frame.operator import FrameOperator
from spillway.state.frame.step import FrameStep

__all__ = ["FrameOperator", "FrameStep"]
