"""Engines that do not run on Spark: Flink and Pathway, each in a Python environment of its own.

Contract: an environment is made on demand and kept; a program here imports its engine and the standard
library only, reads text files with the benchmark's rows, and speaks the protocol of `process`. Start with
`foreign_engine`.
"""

from spillway.lab.engines.foreign.environment import EngineEnvironment
from spillway.lab.engines.foreign.foreign_engine import (
    FOREIGN,
    ForeignEngine,
    prepare_flink_live,
    prepare_foreign,
)
from spillway.lab.engines.foreign.text_files import write_text_streams

__all__ = [
    "FOREIGN",
    "EngineEnvironment",
    "ForeignEngine",
    "prepare_flink_live",
    "prepare_foreign",
    "write_text_streams",
]
