"""PostgreSQL as a source: triggers or logical replication, snapshots, copies.

Contract: a position is a snapshot of the server, so a change is in it or not whatever the order of commits.
Start with `server`.
"""

from spillway.maintain.sources.postgres.server import PostgresServer
from spillway.maintain.sources.postgres.session import INLINE_KEYS

__all__ = ["INLINE_KEYS", "PostgresServer"]
