"""Knocks at a standalone master before Spark does, which would retry for a minute before it gives up.

Known limit: a port that answers need not be a Spark master; then Spark's own refusal is reported, later.
"""

import re
import socket

from spillway.errors import SessionError
from spillway.spark.session_master import Master

_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:,/\[\]]+):(?P<port>\d+)")
KNOCK_TIMEOUT_SECONDS = 5.0


def require_reachable(master: Master, timeout_seconds: float = KNOCK_TIMEOUT_SECONDS) -> None:
    """Raises `SessionError` if none of the addresses of a `spark://` master accepts a connection."""
    if not master.url.startswith("spark://"):
        return
    reasons: list[str] = []
    for address in master.url.removeprefix("spark://").split(","):
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise SessionError(f"spark.master = {master.url}: {address!r} is not host:port")
        try:
            with socket.create_connection(
                (match["host"].strip("[]"), int(match["port"])), timeout=timeout_seconds
            ):
                return
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise SessionError(
        f"no Spark master answers at {master.url} ({'; '.join(reasons)}): start it, or correct spark.master"
    )
