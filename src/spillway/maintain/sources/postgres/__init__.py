"""PostgreSQL as a source: triggers or logical replication, snapshots, copies. Start with `server`."""

from spillway.maintain.sources.postgres.server import PostgresServer
from spillway.maintain.sources.postgres.session import INLINE_KEYS

__all__ = ["INLINE_KEYS", "PostgresServer"]
