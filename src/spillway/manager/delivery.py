"""Gives the results of committed epochs to their sinks, each on its own, in order and each epoch once.

A sink that fails does not stop the others: what it lacks is owed to it, stays staged, and is tried again with
every epoch. If it lacks more than `owed_epochs`, the query stops with its error. The manifest lists what was
owed when each record was made, so a restart gives each sink what follows its own last epoch.

Known limit: where there is one sink nothing is owed, the query stops at once.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from spillway.errors import CheckpointError
from spillway.state.log import Manifest, OwedEpoch
from spillway.state.storage import Storage

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One Parquet file of result rows, as the task that wrote it reports it."""

    path: str
    """Relative to the sink's staging directory."""
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedEpoch:
    """The results of one epoch, written but not yet visible."""

    sequence: int
    query_id: str
    files: tuple[ResultFile, ...]
    rows: int


class ResultSink(Protocol):
    """The part of a sink that the engine needs."""

    @property
    def staging(self) -> str | None: ...

    def last_committed(self, query_id: str) -> int: ...

    def commit(self, epoch: StagedEpoch) -> None: ...


class Deliveries:
    """Of one query to its sinks, by the name of the result."""

    def __init__(self, sinks: Mapping[str, ResultSink], query_id: str, owed_epochs: int) -> None:
        self._sinks = sinks
        self._query_id = query_id
        self._most = owed_epochs if len(sinks) > 1 else 0
        self._owed: dict[str, list[OwedEpoch]] = {name: [] for name in sinks}

    @property
    def staging(self) -> dict[str, str | None]:
        """Where the files of each result go."""
        return {name: sink.staging for name, sink in self._sinks.items()}

    def owed(self) -> dict[str, tuple[OwedEpoch, ...]]:
        """What each sink lacks."""
        return {name: tuple(epochs) for name, epochs in self._owed.items() if epochs}

    def load(self, manifest: Manifest, storage: Storage) -> None:
        """Take in after a start what each sink lacks; refused if the manifest no longer knows some of it."""
        for name, sink in self._sinks.items():
            last = sink.last_committed(self._query_id)
            kept = manifest.owed.get(name, ())
            first = kept[0].sequence if kept else manifest.sequence + 1
            _check_sink(name, last, first, manifest.sequence, storage)
            self._owed[name] = [epoch for epoch in kept if epoch.sequence > last]

    def add(self, manifest: Manifest) -> None:
        """Take in the epoch that was just committed."""
        for name, epochs in self._owed.items():
            epochs.append(manifest.owed[name][-1])

    def deliver(self) -> None:
        """Give each sink what it lacks; the error of the first that lacks too much after that."""
        errors = []
        for name, sink in self._sinks.items():
            try:
                self._catch_up(name, sink)
            except Exception as error:
                if len(self._owed[name]) > self._most:
                    errors.append(error)
                else:
                    _LOG.warning(
                        "the sink of result %r lacks %d epochs: %s", name, len(self._owed[name]), error
                    )
        if errors:
            raise errors[0]

    def _catch_up(self, name: str, sink: ResultSink) -> None:
        epochs = self._owed[name]
        while epochs:
            files = tuple(ResultFile(*file) for file in epochs[0].files)
            rows = sum(file.rows for file in files)
            sink.commit(StagedEpoch(epochs[0].sequence, self._query_id, files, rows))
            epochs.pop(0)


def _check_sink(name: str, delivered: int, first: int, committed: int, storage: Storage) -> None:
    sink = f"the sink of {name}" if name else "the sink"
    if delivered > committed:
        raise CheckpointError(
            f"{sink} has epoch {delivered}, but the manifest in {storage.uri('manifest')} ends "
            f"with epoch {committed}: records are missing; restore them from a backup"
        )
    if delivered < first - 1:  # what the sink had when the last record was made
        raise CheckpointError(
            f"{sink} has epochs up to {delivered}, but the checkpoint {storage.root} has "
            f"epochs up to {committed}: the sink was deleted, changed or restored from an "
            "older copy; restore it, or start with a new checkpoint and an empty sink"
        )
