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
    [("test_with_forks_and_sessions", "worker", 4), ("test_with_spark_and_postgresql", "run", 6)],
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
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *words, f"{HELD}::{name}"],
        env=os.environ | {"SPILLWAY_HELD_READY": str(ready)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as run:
        assert wait_until(lambda: ready.exists() or run.poll() is not None, START_SECONDS)
        assert run.poll() is None
        told = json.loads(ready.read_text())
        worker, others = psutil.Process(told["worker"]), [psutil.Process(pid) for pid in told["others"]]
        started = worker.children(recursive=True) + others
        started += [process for other in others for process in other.children(recursive=True)]
        assert len(started) >= least
        victim = worker if killed == "worker" else psutil.Process(run.pid)
        started += [worker] if victim.pid == run.pid else []
        victim.send_signal(signal.SIGKILL)
        assert wait_until(lambda: not any(map(runs, started)), END_SECONDS), [
            process.cmdline() for process in started if runs(process)
        ]
        assert wait_until(lambda: run.poll() is not None, END_SECONDS)
    assert wait_until(lambda: not Path(told["directory"]).exists(), END_SECONDS)


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
