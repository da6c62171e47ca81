"""A Spark master URL, read before a JVM is started: a typing error costs no seconds and no stack trace.

Known limit: of a cluster manager that Spark loads as a plug-in only the form `scheme://...` is checked.

Also connects to a standalone master before Spark does, because Spark would retry for a minute.

Known limit: a port that answers need not be a Spark master; then Spark's own refusal is reported, later.
"""

import re
import socket
from dataclasses import dataclass
from typing import Literal

from spillway.errors import SessionError

DEFAULT_MASTER = "local[*,4]"
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*([1-9]\d*)\s*,\s*[1-9]\d*\s*,\s*[1-9]\d*\s*\]")
_REMOTE = re.compile(r"[a-z][a-z0-9+]*://\S+|yarn")
_LOOPBACK = re.compile(r"spark://(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(,|$)")
Kind = Literal["local", "local-cluster", "remote"]


@dataclass(frozen=True, slots=True)
class Master:
    """Where Spark runs; `executors` is how many the URL itself promises, 0 where it does not say."""

    url: str
    kind: Kind
    executors: int = 0

    @property
    def is_on_this_machine(self) -> bool:
        """Whether loopback reaches every executor."""
        return self.kind != "remote" or _LOOPBACK.match(self.url) is not None


def parse_master(url: str) -> Master:
    """The master that `url` names; raises `SessionError` for one that Spark would not understand."""
    if _LOCAL.fullmatch(url):
        return Master(url, "local")
    cluster = _LOCAL_CLUSTER.fullmatch(url)
    if cluster:
        return Master(url, "local-cluster", int(cluster.group(1)))
    if _REMOTE.fullmatch(url):
        return Master(url, "remote")
    raise SessionError(
        f"spark.master = {url!r} is not a Spark master: use local[*,4], local-cluster[executors,cores,MB],"
        " spark://host:port, yarn or k8s://..."
    )


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
