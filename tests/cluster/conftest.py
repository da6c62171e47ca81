"""Several hosts on one machine: a Spark master here, and a worker in namespaces of its own for each host.

A host has its own name, processes, `/dev/shm`, and a disk at a path that exists on every host but is not
shared. The network is one: each host has a loopback address. The driver is a process of this machine.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest

from spillway.spark.jvm.java import find_java

JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
MEMORY = {"h1": "300m", "h2": "40m"}
"""The size of `/dev/shm` of each host."""
START_SECONDS = 60.0
SPACES = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]


@dataclass(slots=True)
class Cluster:
    """A standalone master and its hosts."""

    root: Path
    port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    @property
    def private(self) -> Path:
        """A directory that every host has, each its own."""
        return self.root / "private"

    def start_master(self) -> None:
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]
        self._start("master", [], "127.0.0.1", "org.apache.spark.deploy.master.Master", *words)

    def start_host(self, number: int) -> None:
        name = f"h{number}"
        inside = (
            f"hostname {name} && mount -t tmpfs -o size={MEMORY[name]},mode=1777 shm /dev/shm"
            f' && mount -t tmpfs disk {self.private} && touch {self.private}/{name} && exec "$@"'
        )
        words = ["--host", f"127.0.0.{number + 1}", "--cores", "1", "--memory", "600m", "--webui-port", "0"]
        work = ["--work-dir", str(self.root / name)]
        main = "org.apache.spark.deploy.worker.Worker"
        host = [*SPACES, "sh", "-c", inside, "host"]
        self._start(name, host, f"127.0.0.{number + 1}", main, *words, *work, self.url)

    def _start(self, name: str, before: list[str], address: str, main: str, *words: str) -> None:
        home = Path(pyspark.__file__).parent
        java = find_java(os.environ).home
        command = [
            f"{java}/bin/java",
            "-Xmx256m",
            *JVM_OPTIONS.split(),
            "-cp",
            f"{home}/jars/*",
            main,
            *words,
        ]
        environment = os.environ | {
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": "2.13",  # a worker looks for a build of Spark without it
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_HOSTNAME": address,
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self.root / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*before, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, name: str, text: str) -> None:
        log, deadline = self.root / f"{name}.log", time.monotonic() + START_SECONDS
        while text not in log.read_text():
            assert self.processes[name].poll() is None, f"{name} ended: {log.read_text()[-2_000:]}"
            assert time.monotonic() < deadline, f"{name} did not start in time: {log.read_text()[-2_000:]}"
            time.sleep(0.05)

    def inside(self, name: str, *command: str) -> str:
        """The output of a command that runs on a host."""
        init = Path(f"/proc/{self.processes[name].pid}/task/{self.processes[name].pid}/children")
        enter = ["nsenter", "--target", init.read_text().split()[0], "--mount", "--pid", "--uts"]
        return subprocess.run([*enter, *command], check=True, capture_output=True, text=True).stdout

    def images(self, name: str) -> list[str]:
        """What is left in the memory of a host, without the empty directory of the user."""
        found = self.inside(name, "find", "/dev/shm", "-mindepth", "2").split()
        return sorted(found)

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with --kill-child the whole host goes
            process.wait(20)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="session")
def on_a_host() -> list[str]:
    """The beginning of a command that is to run on a host of its own; all its processes end with it."""
    if shutil.which("nsenter") is None or subprocess.run([*SPACES, "true"], capture_output=True).returncode:
        pytest.fail(
            "tests/cluster makes hosts of namespaces: run as root, with util-linux (unshare, nsenter)"
        )
    return SPACES


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, on_a_host: list[str]) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), _free_port())
    made.private.mkdir()
    try:
        made.start_master()
        made.wait_for("master", "New state: ALIVE")
        for number in (1, 2):
            made.start_host(number)
        for name in ("h1", "h2"):
            made.wait_for(name, "Successfully registered with master")
        yield made
    finally:
        made.close()
