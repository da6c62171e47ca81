"""Unix-domain sockets between the JVM and its Python workers, in a directory of this process.

Spark's TCP sockets between them wait for delayed acknowledgements: an RDD job of two small Python tasks took
63 to 75 ms over TCP and 18 to 35 ms over Unix sockets. A socket's path has at most 104 bytes on some systems,
so a long temporary directory is passed over; without a short one, TCP is used.

Spark leaves the socket files of killed processes behind. The directory carries the process id of its owner,
and the next session removes those of dead ones.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spillway.spark.jvm.master import Master

ENABLED = "spark.python.unix.domain.socket.enabled"
DIRECTORY = "spark.python.unix.domain.socket.dir"
MOST_PATH_BYTES = 104
_FILE_BYTES = len("/.00000000-0000-0000-0000-000000000000.sock") + 1


def socket_settings(master: Master, candidates: Sequence[Path] | None = None) -> dict[str, str]:
    """Settings of a session for `master`; executors elsewhere use their own temporary directory."""
    if not master.is_on_this_machine:
        return {ENABLED: "true"}
    parents = [Path(tempfile.gettempdir()), Path("/tmp")] if candidates is None else candidates  # noqa: S108
    for parent in parents:
        directory = parent / f"spillway-sockets-{os.getuid()}-{os.getpid()}"
        if len(os.fsencode(directory)) + _FILE_BYTES <= MOST_PATH_BYTES and os.access(parent, os.W_OK):
            _remove_dead(parent)
            directory.mkdir(mode=0o700, exist_ok=True)
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
            return {ENABLED: "true", DIRECTORY: str(directory)}
    return {ENABLED: "false"}


def _remove_dead(parent: Path) -> None:
    for found in parent.glob(f"spillway-sockets-{os.getuid()}-*"):
        process = found.name.rpartition("-")[2]
        if process.isdecimal() and not Path(f"/proc/{process}").exists():
            shutil.rmtree(found, ignore_errors=True)
