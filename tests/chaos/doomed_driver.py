"""`spillway run` that kills its own process group at a named place of one epoch's commit.

    staged      the tasks have written all files; the manifest does not know the epoch
    committed   the manifest has the epoch; the sink does not
    sunk        the sink has it; the journal does not

Usage: doomed_driver.py PLACE SEQUENCE JOB.toml --json
"""

import os
import signal
import sys
from typing import Any

from spillway.cli import main
from spillway.manager.journal import Journal
from spillway.spark.sinks.committer import SinkCommitter
from spillway.state.manifest_log import ManifestLog


def die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def arm(place: str, doomed: int) -> None:
    commit, commit_files, append = ManifestLog.commit, SinkCommitter.commit_files, Journal.append

    def staged(self: Any, manifest: Any, record: Any) -> Any:
        if record.sequence == doomed:
            die()
        return commit(self, manifest, record)

    def committed(self: Any, sequence: int, files: Any) -> None:
        if sequence == doomed:
            die()
        commit_files(self, sequence, files)

    def sunk(self: Any, entry: dict[str, Any]) -> None:
        if entry["sequence"] == doomed:
            die()
        append(self, entry)

    if place == "staged":
        ManifestLog.commit = staged  # type: ignore[method-assign]
    elif place == "committed":
        SinkCommitter.commit_files = committed  # type: ignore[method-assign]
    elif place == "sunk":
        Journal.append = sunk  # type: ignore[method-assign]
    else:
        raise SystemExit(f"unknown place {place}")


if __name__ == "__main__":
    _, where, when, *rest = sys.argv
    arm(where, int(when))
    sys.argv = ["spillway", "run", *rest]
    main()
