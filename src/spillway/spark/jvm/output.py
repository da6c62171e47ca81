"""What a JVM writes to its standard error: warnings of its start, log lines, output of Python workers.

A thread reads it from a pipe, so nothing of it reaches the screen unless it is asked for. The last part is
kept in memory for the details of a failure. Known limit: a JVM that somebody else started writes elsewhere.
"""

import fcntl
import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress

from pyspark import SparkContext
from pyspark.logger import PySparkLogger

from spillway.detail_log import cleaned

KEPT_BYTES = 1 << 20
SETTLE_SECONDS, PATIENCE_SECONDS = 0.05, 1.0
"""Lines that were written are here once none came for so long; and the longest wait for that."""
_ATTRIBUTE = "spillway_output"
_PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class JvmOutput:
    """The output of one JVM; hand `writing_end` to it, then call `release`."""

    def __init__(self, *, echo: bool) -> None:
        self.echo = echo
        self._reading_end, self.writing_end = os.pipe()
        with suppress(OSError):  # where a pipe cannot be larger, the JVM waits earlier for us to read
            fcntl.fcntl(self.writing_end, fcntl.F_SETPIPE_SZ, KEPT_BYTES)
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="spillway-jvm-output", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Give up this process's copy of the writing end, so that the output ends with the JVM."""
        os.close(self.writing_end)

    def text(self) -> str:
        """The last part of what was written; waits a moment for lines that are on their way."""
        asked = time.monotonic()
        while self._thread.is_alive() and time.monotonic() < min(
            asked + PATIENCE_SECONDS, max(asked, self._last) + SETTLE_SECONDS
        ):
            time.sleep(SETTLE_SECONDS / 5)
        with self._lock:
            return b"".join(self._parts).decode(errors="replace")

    def _read(self) -> None:
        with open(self._reading_end, "rb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor, not a path
            rest = b""
            while part := pipe.read(1 << 16):
                self._keep(part)
                *lines, rest = (rest + part).split(b"\n")
                if self.echo:
                    for line in lines:
                        sys.stderr.write(cleaned(line.decode(errors="replace")) + "\n")
                    sys.stderr.flush()

    def _keep(self, part: bytes) -> None:
        with self._lock:
            self._parts.append(part)
            self._size += len(part)
            while self._size - len(self._parts[0]) > KEPT_BYTES:
                self._size -= len(self._parts.popleft())
            self._last = time.monotonic()


def keep_output(output: JvmOutput) -> None:
    """Remember the output of the JVM that was just started, for as long as its gateway lives.

    PySpark prints errors of Spark to the screen besides raising them; it is told not to.
    """
    setattr(SparkContext._gateway, _ATTRIBUTE, output)
    for name in _PYSPARK_LOGGERS:
        PySparkLogger.getLogger(name).disabled = not output.echo


def jvm_output() -> JvmOutput | None:
    """The output of the JVM of this process; None if somebody else started it."""
    return getattr(SparkContext._gateway, _ATTRIBUTE, None)


def jvm_text() -> str:
    """The last part of what the JVM of this process wrote."""
    output = jvm_output()
    return "" if output is None else output.text()
