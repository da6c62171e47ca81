"""Asks every executor, before the first epoch, whether it can serve a query: shared paths, room in memory.

The driver leaves a nonce in the checkpoint and in the sink. Each executor reads it and writes it back under
its own name, where the driver reads it. Invariant: an executor that does not see the driver's nonce writes
nothing, so a path that is not shared is never written on two hosts. An executor also claims its memory tier,
which removes the images that earlier lives of the query, or drivers that died, left on its host.

Known limit: executors are asked once; one that registers later is only asked whether it sees the checkpoint
and the sink (`spark/processor.py`).
"""

import shutil
import socket
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spillway.errors import CheckpointError, StateError
from spillway.state.memory.tier_directory import TierDirectory
from spillway.state.storage import TEMPORARY_PREFIX, Storage

_DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What one executor found."""

    host: str
    executor: str
    faults: tuple[str, ...]
    """What is wrong with a path, as the rest of a sentence that begins with the host."""
    tier_device: int
    """Tells file systems of a host apart."""
    free_bytes: int
    """Room in the file system of the memory tier."""


@dataclass(frozen=True, slots=True)
class HostProbe:
    """One round of questions. It is sent to the executors."""

    paths: tuple[tuple[str, str], ...]
    """What each path is for, and the path or URI."""
    tier: TierDirectory
    room_bytes: int
    """What the images of the processors of one executor may take; 0: not known."""
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)

    def begin(self) -> None:
        """On the driver: leave the nonce. Removed by `end`."""
        for _, path in self.paths:
            Storage(path).write(self._name(_DRIVER), self._text(_DRIVER))

    def answer(self, executor: str) -> HostAnswer:
        """On an executor, which is named by its process id."""
        host = socket.gethostname()
        writer = f"{host}-{executor}"
        faults = [fault for use, path in self.paths if (fault := self._fault(use, path, writer))]
        self.tier.claim(int(executor))
        directory = Path(self.tier.path)
        free = shutil.disk_usage(directory).free
        return HostAnswer(host, executor, tuple(faults), directory.stat().st_dev, free)

    def _fault(self, use: str, path: str, writer: str) -> str:
        storage = Storage(path)
        try:
            if storage.read(self._name(_DRIVER)).to_pybytes() != self._text(_DRIVER):
                return f"reads something else in the {use} {path} than the driver wrote there"
        except StateError:
            return f"does not see what the driver wrote to the {use} {path}"
        try:
            storage.write(self._name(writer), self._text(writer))
        except StateError as error:
            return f"cannot write to the {use} {path} ({error})"
        return ""

    def judge(self, answers: Sequence[HostAnswer]) -> None:
        """On the driver: `CheckpointError` that names the hosts that cannot serve the query."""
        here = socket.gethostname()
        faults = [f"host {answer.host} {fault}" for answer in answers for fault in answer.faults]
        faults += [
            f"the driver on {here} does not see what host {answer.host} wrote to the {use} {path}"
            for answer in answers
            if not answer.faults
            for use, path in self.paths
            if not self._sees(path, f"{answer.host}-{answer.executor}")
        ]
        if faults:
            raise CheckpointError(
                f"{_listed(faults)}: all hosts must share it; use a directory that is mounted on every host, "
                "or an object store"
            )
        if short := self._without_room(answers):
            raise CheckpointError(
                f"{_listed(short)} for the memory tier: enlarge the file system, lower [run] memory, or give "
                "another directory in [run] tier"
            )

    def _sees(self, path: str, writer: str) -> bool:
        try:
            return bool(Storage(path).read(self._name(writer)).to_pybytes() == self._text(writer))
        except StateError:
            return False

    def _without_room(self, answers: Sequence[HostAnswer]) -> list[str]:
        together = defaultdict(list)
        for answer in answers:
            together[answer.host, answer.tier_device].append(answer)
        return [
            f"host {host} has {_megabytes(least)} free in {self.tier.path}, but needs {_megabytes(needed)}"
            for (host, _), executors in together.items()
            if (least := min(answer.free_bytes for answer in executors))
            < (needed := self.room_bytes * len(executors))
        ]

    def end(self) -> None:
        """On the driver: remove what all have written."""
        for _, path in self.paths:
            Storage(path).delete_temporaries(self._name(""))

    def _name(self, writer: str) -> str:
        return f"{TEMPORARY_PREFIX}hosts-{self.nonce}-{writer}"

    def _text(self, writer: str) -> bytes:
        return f"{self.nonce} {writer}".encode()


def _listed(texts: Sequence[str], shown: int = 3) -> str:
    unique = list(dict.fromkeys(texts))
    more = f" (and {len(unique) - shown} more)" if len(unique) > shown else ""
    return "; ".join(unique[:shown]) + more


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MB"
