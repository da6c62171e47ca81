"""Databases that hold the sources of maintained views, behind one protocol.

Contract: a server answers queries at its present state and says exactly what changed since a position, or
that it is another incarnation. SQL is parameterised and quoted. Start with `server`.
"""

from spillway.maintain.sources.delta import DeltaServer
from spillway.maintain.sources.duckdb import DuckDbServer
from spillway.maintain.sources.position import SourcePosition, recreated, restored
from spillway.maintain.sources.server import FEEDS, Cut, Server, SourceTable
from spillway.maintain.sources.sqlite import SqliteServer
from spillway.maintain.sources.table_files import TableFiles, Version

__all__ = [
    "FEEDS",
    "Cut",
    "DeltaServer",
    "DuckDbServer",
    "Server",
    "SourcePosition",
    "SourceTable",
    "SqliteServer",
    "TableFiles",
    "Version",
    "recreated",
    "restored",
]
