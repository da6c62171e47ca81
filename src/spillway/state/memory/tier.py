"""The memory tier: images of runs, memory-mapped from a tmpfs directory.

An image is an uncompressed copy of the slices of one run that a processor serves. Any Python worker of the
host maps it without copying. Images are only a cache: the directory is named by the driver's token, whatever
is missing is read from the durable runs, and whatever the orders do not name is removed.

Invariant: an image is complete under its name (written aside, then renamed); its metadata says which groups
it has, and a note beside it, written before anything is freed, which of them it has no more. So a lost or
half-loaded tier can never change an answer.

To give memory back is work of the operating system, page by page. It goes on beside the caller, who may read
other groups meanwhile; nothing is stored before it has ended, so the images never take more than they did.
"""

import os
import shutil
import socket
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from spillway.errors import StateError
from spillway.model import GroupSet, from_hex, members, to_hex
from spillway.state.memory.punch import PAGE_BYTES, Holes, dead_ranges, holes_of
from spillway.state.rows import (
    HashFilter,
    Run,
    SortedRows,
    decode_with_metadata,
    encode,
    flags,
    group_offsets,
    read_run,
    rows_only,
)
from spillway.state.storage import Storage, mapped_file

IMAGE = ".image"
FREED = ".freed"
LEAVING = ".leaving"
FILTER_COLUMN = "filter"
LEFT_SHARE = 0.25
"""Rows that left may still take this share of what the last call of `free` was to give back."""


def sibling_bytes(directory: str) -> int:
    """The memory of the images in the directories beside this one."""
    own = Path(directory)
    try:
        beside = [sibling for sibling in own.parent.iterdir() if sibling.is_dir() and sibling != own]
    except FileNotFoundError:
        return 0
    return sum(MemoryTier(str(sibling), 1).resident_bytes() for sibling in beside)


@dataclass(slots=True)
class MemoryTier:
    """The images of one processor on this host."""

    directory: str
    groups: int
    freed_bytes: int = 0
    """What was given back so far, once it is settled."""
    _freeing: Future[None] | None = None
    """What goes on beside the caller."""
    _before_bytes: int = 0
    _resident: int | None = None
    """What the images occupy, while that is known not to change."""
    _listed: dict[str, list[Path]] | None = None
    """The images by the stem of their run, once the directory was read: nobody else adds any."""
    _opened: dict[Path, "_Image"] = field(default_factory=dict)
    """Images that were looked at and are still to be loaded: to open a file twice takes twice as long."""

    def open(self) -> None:
        """Look at all images, as `free` and `load` do."""
        self._opened = {path: self._open(path) for path in self._images()}

    def load(self, storage: Storage, run: Run, wanted: GroupSet) -> tuple[list[SortedRows], int]:
        """Segments that together hold the wanted groups of the run, and the bytes read from disk for them."""
        segments = []
        missing = wanted
        for path in self._images(run):
            image = self._opened.pop(path, None) or self._open(path)
            used = image.contained & missing
            if used:
                segments.append(image.only(used, self.groups))
                missing &= ~used
        if not missing:
            return segments, 0
        whole = read_run(storage, run)
        loaded = SortedRows(whole.hashes, whole.columns, flags(missing, self.groups)).only_live(self.groups)
        segments.append(self.store(run, loaded, missing))
        return segments, run.bytes

    def store(self, run: Run, segment: SortedRows, contained: GroupSet) -> SortedRows:
        """Keep the segment as an image of the run, and give it back as mapped from there."""
        self.settle()
        path = self._new_path(_stem(run))
        self._write(path, segment, contained)
        return self._open(path).only(contained, self.groups)

    def _new_path(self, stem: str) -> Path:
        directory = Path(self.directory)
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{stem}.{uuid.uuid4().hex[:8]}{IMAGE}"

    def _write(self, path: Path, segment: SortedRows, contained: GroupSet) -> None:
        aside = path.with_suffix(".writing")
        try:
            with pa.OSFile(str(aside), "wb") as sink:
                encode(sink, _with_filter(segment), {"groups": to_hex(contained)}, None)
            aside.rename(path)
            if self._listed is not None:
                self._listed.setdefault(_stem_of(path.name), []).append(path)
            if self._resident is not None:
                self._resident += _blocks(path)
        except OSError as error:
            aside.unlink(missing_ok=True)
            free = shutil.disk_usage(path.parent).free
            reason = os.strerror(error.errno) if error.errno else error
            raise StateError(
                f"host {socket.gethostname()} cannot keep {segment.nbytes} bytes of state in {path.parent}, "
                f"which has {free} bytes free ({reason}): enlarge the file system, lower "
                "[run] memory, or give another directory in [run] tier"
            ) from error

    def free(self, groups: GroupSet) -> None:
        """Begin to give back the memory of these groups in all images; `settle` waits for the end of it.

        Only images of this step's own runs may be there (`keep_only`): none of its attempts reads these
        groups in them.
        """
        self._before_bytes = self.resident_bytes()
        beside, rewritten = self._sorted_out(groups)
        if beside:
            with_one = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spillway-free")
            self._freeing = with_one.submit(_all, beside)
            with_one.shutdown(wait=False)
        while rewritten:  # one at a time, after all that is given back without a copy
            self._wait()
            self._rewrite(rewritten.pop())

    def _sorted_out(self, groups: GroupSet) -> tuple[list[Callable[[], None]], list["_Kept"]]:
        """What gives memory back beside the caller, and the images to be rewritten, the last one first."""
        beside: list[Callable[[], None]] = []
        given = 0  # bytes
        kept = []
        for path in self._images():
            image = self._opened[path] if path in self._opened else self._open(path)
            dead = image.contained & groups
            if dead and dead == image.contained:
                self._opened.pop(path, None)
                given += path.stat().st_blocks * 512
                beside.append(self._retired(path))
            else:
                kept.append(_Kept.of(path, image, dead, self.groups))
        rewritten = _to_rewrite(kept, given)
        beside += [self._marked(entry) for entry in kept if entry.dead and entry not in rewritten]
        return beside, rewritten

    def settle(self) -> None:
        """Wait until all that was freed is given back."""
        self._wait()
        if self._before_bytes:
            self.freed_bytes += self._before_bytes - self.resident_bytes()
            self._before_bytes = 0

    def _wait(self) -> None:
        freeing, self._freeing = self._freeing, None
        if freeing is not None:
            freeing.result()
            self._resident = None

    def discard(self, run: Run) -> None:
        """Remove the images of a run that another one stands for now."""
        for path in self._images(run):
            self._remove(path)

    def keep_only(self, runs: Sequence[Run]) -> None:
        """Remove the images of all other runs, and what killed attempts left half-written."""
        wanted = {_stem(run) for run in runs}
        for entry in _entries(self.directory):
            if _stem_of(entry.name) not in wanted or not entry.name.endswith((IMAGE, FREED)):
                Path(entry.path).unlink(missing_ok=True)
        self._resident = self._listed = None

    def resident_bytes(self) -> int:
        """The memory that the images occupy, as the operating system allocates it.

        What is freed beside the caller counts until `settle`.
        """
        if self._resident is None:
            self._resident = sum(entry.stat().st_blocks * 512 for entry in _entries(self.directory))
        return self._resident

    def _rewrite(self, kept: "_Kept") -> None:
        """Replace an image by one with the groups that stay, where punching would leave too much behind.

        The old one goes first, so that both are never there; a process that ends between reads the run.
        """
        path, contained = kept.path, kept.image.contained & ~kept.dead
        left = kept.image.only(contained, self.groups).only_live(self.groups)
        self._opened.pop(path, None)
        self._remove(path)
        del kept  # it maps the old image
        self._write(self._new_path(_stem_of(path.name)), left, contained)

    def _marked(self, kept: "_Kept") -> Callable[[], None]:
        """Leave groups out of an image from now on; what is returned notes that, and gives memory back."""
        left = kept.image.contained & ~kept.dead
        self._opened[kept.path] = replace(kept.image, contained=left)
        return partial(_punch, kept.path, kept.dead, kept.holes)

    def _images(self, run: Run | None = None) -> list[Path]:
        if self._listed is None:
            self._listed = {}
            for entry in sorted(_entries(self.directory), key=lambda entry: entry.name):
                if entry.name.endswith(IMAGE):
                    self._listed.setdefault(_stem_of(entry.name), []).append(Path(entry.path))
        if run is not None:
            return list(self._listed.get(_stem(run), ()))
        return [path for paths in self._listed.values() for path in paths]

    def _open(self, path: Path) -> "_Image":
        mapped = mapped_file(str(path))
        rows, metadata = decode_with_metadata(pa.BufferReader(mapped), str(path))
        return _Image(_filtered(rows), from_hex(metadata[b"groups"].decode()) & ~_freed(path), mapped.address)

    def _retired(self, path: Path) -> Callable[[], None]:
        """Take an image out of use; what is returned gives its memory back."""
        leaving = path.with_suffix(LEAVING)
        path.rename(leaving)
        self._unlist(path)
        path.with_suffix(FREED).unlink(missing_ok=True)
        return partial(_release, leaving)

    def _remove(self, path: Path) -> None:
        for gone in (path, path.with_suffix(FREED)):
            with suppress(FileNotFoundError):
                size = _blocks(gone)
                gone.unlink()
                if self._resident is not None:
                    self._resident -= size
        self._unlist(path)

    def _unlist(self, path: Path) -> None:
        if self._listed is not None:
            self._listed[_stem_of(path.name)].remove(path)


@dataclass(frozen=True, slots=True)
class _Image:
    """An image as mapped."""

    rows: SortedRows
    contained: GroupSet
    address: int
    """Where the file begins in memory."""

    def only(self, groups: GroupSet, count: int) -> SortedRows:
        return replace(self.rows, live=flags(groups, count))


def _with_filter(segment: SortedRows) -> SortedRows:
    """The segment as images hold it: its first column is the filter of its hashes."""
    bits, columns = pa.array(HashFilter.of(segment.hashes).bits), segment.columns
    names = [FILTER_COLUMN, *columns.schema.names]
    return SortedRows(segment.hashes, pa.RecordBatch.from_arrays([bits, *columns.columns], names=names))


def _filtered(rows: SortedRows) -> SortedRows:
    """The segment that an image holds."""
    bits = rows.columns.column(0).to_numpy()
    columns = rows.columns.remove_column(0) if rows.columns.num_columns > 1 else rows_only(rows.rows)
    return SortedRows(rows.hashes, columns, filter=HashFilter(bits))


def _all(work: Iterable[Callable[[], None]]) -> None:
    for part in work:
        part()


def _release(path: Path) -> None:
    with suppress(FileNotFoundError):  # another attempt of the step may have been faster
        os.truncate(path, 0)  # gives the pages back even while they are mapped
        path.unlink()


def _freed(path: Path) -> GroupSet:
    try:
        return from_hex(path.with_suffix(FREED).read_text())
    except FileNotFoundError:
        return 0


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """An image that keeps some groups. What rows take is an average: they may differ by group."""

    path: Path
    image: _Image
    dead: GroupSet
    """Groups that it loses, if any."""
    holes: Holes
    """What can be given back of them without a rewrite."""
    lost_bytes: float
    """What they take."""
    live_bytes: float
    """What the groups take that stay."""
    waste_bytes: float
    """What rows of other groups would take after the holes are punched."""

    @staticmethod
    def of(path: Path, image: _Image, dead: GroupSet, groups: int) -> "_Kept":
        rows, size = image.rows, image.rows.nbytes
        offsets = group_offsets(rows.hashes, groups)
        counts = np.diff(offsets)
        row_bytes = size / max(1, rows.rows)
        lost = float(counts[flags(dead, groups)].sum() * row_bytes)
        live = float(counts[flags(image.contained & ~dead, groups)].sum() * row_bytes)
        ranges = dead_ranges(offsets.tolist(), list(members(dead))) if dead else []
        holes = holes_of(image.address, rows.columns, ranges)  # the hashes stay, in order
        status = path.stat()
        frame = -(-status.st_size // PAGE_BYTES) * PAGE_BYTES - size
        waste = status.st_blocks * 512 - frame - live - holes.bytes
        return _Kept(path, image, dead, holes, lost, live, max(0.0, waste))


def _to_rewrite(kept: Sequence[_Kept], given: float) -> list[_Kept]:
    """The images that are copied without what they lost, instead of being punched.

    Those with the most waste for what is copied, until all waste is a small part of what is given back. Of
    that, `given` bytes are images that go as a whole. The last one of the list is the first to be rewritten.
    """
    allowed = LEFT_SHARE * (given + sum(image.lost_bytes for image in kept))
    waste = sum(image.waste_bytes for image in kept)
    chosen: list[_Kept] = []
    for image in sorted(kept, key=lambda image: image.waste_bytes / (1 + image.live_bytes), reverse=True):
        if waste <= allowed:
            break
        if image.waste_bytes > 0:
            chosen.append(image)
            waste -= image.waste_bytes
    return chosen[::-1]


def _punch(path: Path, dead: GroupSet, holes: Holes) -> None:
    path.with_suffix(FREED).write_text(to_hex(_freed(path) | dead))
    holes.punch(str(path))


def _stem(run: Run) -> str:
    return _stem_of(run.name.rsplit("/", 1)[-1])


def _stem_of(name: str) -> str:
    return name.split(".", 1)[0]


def _blocks(path: Path) -> int:
    """The memory that a file occupies, in bytes."""
    return path.stat().st_blocks * 512


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
