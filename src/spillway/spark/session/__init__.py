"""The public API: `Session` starts a view on a Spark session and returns a `Query`."""

from spillway.spark.session.session import Session

__all__ = ["Session"]
