"""The staging directory of a sink: result files that are written but not yet visible.

It lies in a directory whose name begins with `_`, which readers of Parquet directories skip and Delta readers
never look into. Invariant: it holds only files of epochs that are not committed; a committed file has been
moved to its final name, which depends on sequence and position only, or deleted. So a repeated move
finds each file at exactly one of the two names, and a staged file that no manifest lists is garbage.
"""

from collections.abc import Collection

from spillway.errors import SinkError
from spillway.manager import ResultFile, StagedEpoch
from spillway.state.storage import Storage

PRIVATE_DIRECTORY = "_spillway"
STAGING_DIRECTORY = f"{PRIVATE_DIRECTORY}/staging"


class Staging:
    """The uncommitted files below one sink's root."""

    __slots__ = ("_storage",)

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def uri(self) -> str:
        """Where tasks write: a local path or a URI."""
        return self._storage.uri(STAGING_DIRECTORY)

    def prepare(self) -> None:
        """Create the directory."""
        self._storage.make_directories(STAGING_DIRECTORY)

    def names(self, epoch: StagedEpoch) -> list[str]:
        """The epoch's files, as names below the sink's root; each is checked to be complete."""
        for file in epoch.files:
            self._check(staged_name(file), file, epoch)
        return [staged_name(file) for file in epoch.files]

    def promote(self, epoch: StagedEpoch) -> list[str]:
        """Move the epoch's files to their final names and return those; files that were moved already
        stay."""
        targets = []
        for position, file in enumerate(epoch.files):
            source, target = staged_name(file), final_name(epoch.sequence, position)
            if self._storage.exists(source):
                self._check(source, file, epoch)
                self._storage.move(source, target)
            else:
                self._check(target, file, epoch)
            targets.append(target)
        return targets

    def discard(self, epoch: StagedEpoch) -> None:
        """Delete the epoch's staged files."""
        self._storage.delete(staged_name(file) for file in epoch.files)

    def sweep(self, keep: Collection[str]) -> int:
        """Delete every staged file that is not in `keep` (paths as in `ResultFile`) and count them."""
        kept = {f"{STAGING_DIRECTORY}/{path}" for path in keep}
        garbage = [name for name in self._storage.list(f"{STAGING_DIRECTORY}/") if name not in kept]
        self._storage.delete(garbage)
        return len(garbage) + self._storage.delete_temporaries(f"{STAGING_DIRECTORY}/")

    def _check(self, name: str, file: ResultFile, epoch: StagedEpoch) -> None:
        if not self._storage.exists(name):
            raise SinkError(
                f"result file {file.path} of epoch {epoch.sequence} is not in {self.uri}: the sink was "
                "changed or restored from an older copy; restore the file, or start with an empty checkpoint "
                "and sink"
            )
        found_bytes = self._storage.size(name)
        if found_bytes != file.bytes:
            raise SinkError(
                f"result file {self._storage.uri(name)} of epoch {epoch.sequence} has {found_bytes} bytes "
                f"where {file.bytes} were written; restore it, or start with an empty checkpoint and sink"
            )


def staged_name(file: ResultFile) -> str:
    """A result file's name below the sink's root while it is staged."""
    return f"{STAGING_DIRECTORY}/{file.path}"


def final_name(sequence: int, position: int) -> str:
    """The name of an epoch's n-th result file once it is committed."""
    return f"part-{sequence:020d}-{position:05d}.parquet"
