"""A Spark master URL, read before a JVM is started: a typing error costs no seconds and no stack trace.

Known limit: of a cluster manager that Spark loads as a plug-in only the form `scheme://...` is checked.
"""

import re
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
        f"spark.master = {url!r} is no Spark master: use local[*,4], local-cluster[executors,cores,MB],"
        " spark://host:port, yarn or k8s://..."
    )
