"""The driver's look at a plan: which inputs tasks can read without Spark, and how.

Contract: a `ScanInput` gives the wire rows that `spark/stream/wire.py` would give, or a text says why Spark
reads the input. Start with `inputs`; `positive_list` says which expressions are evaluated here.
"""

from spillway.scan.native.inputs import native_inputs
from spillway.scan.native.settings import SPARK_SETTINGS

__all__ = ["SPARK_SETTINGS", "native_inputs"]
