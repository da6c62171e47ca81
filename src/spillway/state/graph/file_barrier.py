"""How the tasks of one epoch tell each other what they have, while all of them run.

A task writes what it has to say in one file and waits for those of the others. It is what a barrier of Spark
does, whose own takes a second. A task that waits for one that has died ends with it: Spark ends them
together.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from spillway.errors import StateError
from spillway.state.graph.exchange import DIRECTORY
from spillway.state.storage import Storage

WAIT_SECONDS = 3600.0
LOOK_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class FileBarrier:
    storage: Storage
    name: str
    """Of this run of the epoch; no other has it."""
    processor: int
    processors: int

    def exchange(self, level: int, sent: Mapping[int, str]) -> list[str]:
        """Tell each processor what is for it, and learn what all have for this one."""
        texts = json.dumps({str(target): text for target, text in sent.items()})
        self.storage.write(self._file(level, self.processor), texts.encode())
        return [self._read(level, sender) for sender in range(self.processors)]

    def _read(self, level: int, sender: int) -> str:
        name = self._file(level, sender)
        until = time.monotonic() + WAIT_SECONDS
        while not self.storage.exists(name):
            if time.monotonic() > until:
                raise StateError(
                    f"processor {self.processor} waited {WAIT_SECONDS:g} s for processor {sender}, which has "
                    f"not come to level {level}; look for its task in Spark's log"
                )
            time.sleep(LOOK_SECONDS)
        text: str = json.loads(self.storage.read(name).to_pybytes())[str(self.processor)]
        return text

    def _file(self, level: int, sender: int) -> str:
        return f"{DIRECTORY}/{self.name}-{level}-{sender:04d}.json"
