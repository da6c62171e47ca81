"""Ends what a test process leaves behind, even if it was killed with SIGKILL.

    python reaper.py PID MARK

`watch` puts a mark into the environment of the test process, so all programs that it starts inherit it: JVMs,
their Python workers, PostgreSQL servers, in whatever session or PID namespace. Forks that start no program
inherit an open file with the mark as its name. A process beside the test process waits for its end. Then it
ends every process that has the mark, and removes directories in `/tmp` and `/dev/shm` whose names have it.

An xdist worker adds a mark of its own: if it is killed alone, only what it started ends. Known limit: Linux
only, and a process that is started with an environment of its own is not found.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

VARIABLE = "SPILLWAY_TEST_MARKS"
PLACES = ("/tmp", "/dev/shm")
GRACE_SECONDS = 2.0
"""Processes get this long to end by themselves: a JVM removes its temporary files."""
QUIET_SECONDS = 0.5
"""No process with the mark for this long: none is left that could start another."""
PROCESSES = Path("/proc")


def watch() -> str:
    """Marks this process, and has its end watched; returns the mark."""
    mark = uuid4().hex
    os.environ[VARIABLE] = " ".join([*os.environ.get(VARIABLE, "").split(), mark])
    if PROCESSES.is_dir():
        os.memfd_create(mark)  # open as long as the process lives
        subprocess.run(
            [sys.executable, "-IS", __file__, str(os.getpid()), mark],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env={},  # without the mark of a test process around this one, which may end first
            check=True,
        )
    return mark


def own_mark() -> str:
    """The mark of this process, for the names of temporary directories."""
    return os.environ.get(VARIABLE, "unmarked").split()[-1]


def marked(mark: str) -> Iterator[int]:
    """All processes that inherited the mark."""
    for entry in PROCESSES.iterdir():
        if entry.name.isdecimal():
            try:
                names = [str(file.readlink()) for file in (entry / "fd").iterdir()]
                if mark.encode() in (entry / "environ").read_bytes() or any(mark in name for name in names):
                    yield int(entry.name)
            except OSError:
                continue  # it has just ended, or is another user's


def end_all(mark: str) -> None:
    """SIGTERM, and SIGKILL for what does not obey."""
    started = seen = time.monotonic()
    while time.monotonic() < seen + QUIET_SECONDS:
        for pid in marked(mark):
            seen = time.monotonic()
            obeys = seen < started + GRACE_SECONDS
            try:
                os.kill(pid, signal.SIGTERM if obeys else signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)


def main(pid: int, mark: str) -> None:
    process = os.pidfd_open(pid)
    if os.fork():
        return  # the watcher is nobody's child: tests count children
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    waiting.poll()
    end_all(mark)
    for place in PLACES:
        for directory in Path(place).glob(f"*{mark}*"):
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
