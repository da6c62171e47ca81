"""Maintains a view and dies by SIGKILL in the middle of a round. Usage: doomed_manager.py JOB.toml PLACE

PLACE: `ask` before the second maintenance query, `apply` before the view's delta is committed, `confirm`
after that and before the sources hear of it.
"""

import os
import signal
import sys
from typing import Any

from spillway.job import read_maintain_job
from spillway.maintain.maintenance import open_maintenance


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    job, place = sys.argv[1:]
    with open_maintenance(read_maintain_job(job)) as maintenance:
        maintenance.manager.start()
        if place == "ask":
            for server in maintenance.servers.values():
                calls = iter([server.ask])
                server.ask = lambda *a, calls=calls, **k: next(calls, die)(*a, **k)  # type: ignore[method-assign]
        elif place == "apply":
            maintenance.store.apply = die  # type: ignore[method-assign,assignment]
        else:
            for server in maintenance.servers.values():
                server.confirm = die  # type: ignore[method-assign]
        maintenance.manager.round()


if __name__ == "__main__":
    main()
