"""Makes the batches of a query whose inputs are all files: what is new, what of it comes next, on record.

Invariant: a file is in one batch at most, and a batch is in the log before anybody sees it. What was read
must stay as it was: a file that is listed again with another size or time is refused by name, because its
new rows would never be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from spillway.errors import SourceError
from spillway.manager.files.choice import chosen
from spillway.manager.files.entry import FileBatch, FileEntry
from spillway.manager.files.listing import FileListing
from spillway.manager.files.log import FileLog, Known
from spillway.manager.files.options import ListingOptions
from spillway.manager.files.row_estimate import UNKNOWN_RATIO, RowEstimate, sampled_ratio
from spillway.manager.files.tree import FileTree
from spillway.policy import EpochSize, MeasuredEpoch, SizeLimits, first_size, next_size


class Listing(Protocol):
    def files(self) -> list[FileEntry]:
        """All files, oldest first; the same list again means that nothing has changed."""
        ...


@dataclass(frozen=True, slots=True)
class ListedInput:
    """One input as it is listed."""

    name: str
    format: str
    options: ListingOptions
    tree: FileTree
    may_miss: bool = False
    """Whether files may vanish before they are read (`ignoreMissingFiles`)."""
    listing: "Listing | None" = None
    """Who lists the files; None: Spark's rules do."""


@dataclass(slots=True)
class _Input:
    spec: ListedInput
    listing: "Listing"
    known: Known = field(default_factory=dict)
    newest_ms: int | None = None
    listed: list[FileEntry] | None = None
    """What the last listing gave; the same object again means that nothing has changed."""
    waiting: list[FileEntry] = field(default_factory=list)

    def refresh(self) -> None:
        listed = self.listing.files()
        if listed is self.listed:
            return
        self.listed = listed
        age = self.spec.options.max_age_ms
        oldest = None if age is None or self.newest_ms is None else self.newest_ms - age
        self.waiting = []
        for entry in listed:
            before = self.known.get(entry.path)
            if before is None:
                if oldest is None or entry.modified_ms >= oldest:
                    self.waiting.append(entry)
            elif before != (entry.size_bytes, entry.modified_ms):
                raise self._changed(entry, before)

    def take(self, entries: Sequence[FileEntry]) -> None:
        self.waiting = self.waiting[len(entries) :]
        for entry in entries:
            self.known[entry.path] = entry.size_bytes, entry.modified_ms
            self.newest_ms = max(self.newest_ms or entry.modified_ms, entry.modified_ms)

    def _changed(self, entry: FileEntry, before: tuple[int, int]) -> SourceError:
        return SourceError(
            f"[sources.{self.spec.name}] file {entry.path} was read with {before[0]} bytes of "
            f"{_shown(before[1])}, now it has {entry.size_bytes} bytes of {_shown(entry.modified_ms)}: a "
            "file is read once, so the change would be lost; put the old file back, and new rows into a new "
            "file"
        )


class FilePlanner:
    """The batches of one query, in order. One thread plans; another may check and learn meanwhile."""

    def __init__(
        self,
        inputs: Sequence[ListedInput],
        log: FileLog,
        known: Sequence[Known],
        batch_id: int,
        limits: SizeLimits | None,
        most_bytes: int | None = None,
    ) -> None:
        """`known` and `batch_id`: what is committed. No `limits`: a batch takes everything that is there."""
        self._log = log
        self._inputs = [_Input(spec, spec.listing or FileListing(spec.options, spec.tree)) for spec in inputs]
        for input_, files in zip(self._inputs, known, strict=True):
            input_.known = files
            input_.newest_ms = max((modified for _, modified in files.values()), default=None)
        self._next_id = batch_id + 1
        self._limits = limits
        self._most_bytes = most_bytes
        self._size: EpochSize | None = None if limits is None else first_size(limits)
        self._estimate: RowEstimate | None = None
        self._wanted: dict[int, int] = {}
        """By batch, the rows that it was to have."""

    def refresh(self) -> None:
        """Look for new files."""
        for input_ in self._inputs:
            input_.refresh()

    def plan(self, committed: int, *, live: bool) -> FileBatch | None:
        """The next batch of what the last refresh found; None if nothing waits."""
        waiting = [input_.waiting for input_ in self._inputs]
        if not any(waiting):
            return None
        estimate = self._sampled()
        wanted = None
        if self._size is not None:
            sizes = [sum(entry.size_bytes for entry in files) for files in waiting]
            wanted = self._size.wanted(estimate.rows_in(sizes), live=live)
        options = [input_.spec.options for input_ in self._inputs]
        files = chosen(options, waiting, estimate.rows_of, wanted, self._most_bytes)
        batch = FileBatch(self._next_id, files)
        self._log.plan(batch, committed)
        for input_, entries in zip(self._inputs, files, strict=True):
            input_.take(entries)
        self._next_id += 1
        if wanted is not None:
            self._wanted[batch.batch_id] = wanted
        return batch

    def check(self, batch: FileBatch) -> None:
        """Refuse files that have vanished or changed since they were listed, before anybody reads them."""
        for input_, entries in zip(self._inputs, batch.files, strict=True):
            for entry, found in zip(entries, input_.spec.tree.look(e.path for e in entries), strict=True):
                where = f"[sources.{input_.spec.name}] file {entry.path}"
                if found is None and not input_.spec.may_miss:
                    raise SourceError(f"{where} is gone; put it back, then run the job again")
                if found is not None and (found.size_bytes, found.modified_ms) != (
                    entry.size_bytes,
                    entry.modified_ms,
                ):
                    raise SourceError(
                        f"{where} has changed while it was about to be read; write files elsewhere and move "
                        "them here when they are complete, then run the job again"
                    )

    def learn(self, batch: FileBatch, epoch: MeasuredEpoch) -> None:
        """Let the next batches follow what this one was like."""
        wanted = self._wanted.pop(batch.batch_id, None)
        if self._estimate is not None:
            self._estimate = self._estimate.learned(batch, epoch.rows)
        if wanted is not None and self._size is not None and self._limits is not None:
            self._size = next_size(self._size, wanted, epoch, self._limits)

    def _sampled(self) -> RowEstimate:
        if self._estimate is None:
            self._estimate = RowEstimate(tuple(UNKNOWN_RATIO for _ in self._inputs))
        ratios = tuple(
            sampled_ratio(input_.spec.format, input_.waiting[0])
            if ratio == UNKNOWN_RATIO and input_.waiting and input_.spec.options.is_local
            else ratio
            for input_, ratio in zip(self._inputs, self._estimate.ratios, strict=True)
        )
        self._estimate = RowEstimate(ratios, self._estimate.correction)
        return self._estimate


def _shown(modified_ms: int) -> str:
    return str(np.datetime64(modified_ms, "ms"))
