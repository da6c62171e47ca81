"""A test run that is killed leaves no process and no directory behind, whatever it has started."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

HELD = Path(__file__).parent / "held_run.py"
START_SECONDS, END_SECONDS = 240.0, 30.0

pytestmark = pytest.mark.timeout(360)


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)
    return done()


@pytest.mark.parametrize(
    ("name", "killed", "least"),
    [("test_with_forks_and_sessions", "worker", 6), ("test_with_spark_and_postgresql", "run", 8)],
)
def test_nothing_is_left(name: str, killed: str, least: int, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    words = [
        "-q",
        "-n",
        "1",
        "--max-worker-restart=0",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path}/base",
    ]
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", *words, f"{HELD}::{name}"],
        env=os.environ | {"SPILLWAY_HELD_READY": str(ready)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    started = [psutil.Process(run.pid)]
    try:
        assert wait_until(lambda: ready.exists() or run.poll() is not None, START_SECONDS)
        assert run.poll() is None
        told = json.loads(ready.read_text())
        others = [psutil.Process(pid) for pid in told["others"]]
        for process in (psutil.Process(told["worker"]), *others):
            started += [process, *process.children(recursive=True)]
        assert len(started) >= least
        os.kill(told["worker"] if killed == "worker" else run.pid, signal.SIGKILL)
        assert wait_until(lambda: run.poll() is not None and not any(map(runs, started)), END_SECONDS), [
            process.cmdline() for process in started if runs(process)
        ]
        assert wait_until(lambda: not Path(told["directory"]).exists(), END_SECONDS)
    finally:
        for process in filter(runs, started):
            process.kill()
        run.wait()


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
