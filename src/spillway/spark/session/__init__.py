"""The public API: `Session` starts a view on a Spark session and returns a `Query`.

Contract: whatever can be refused is refused before the first epoch, and leaves nothing behind. Start with
`session`.
"""

from spillway.spark.session.session import Session

__all__ = ["Session"]
