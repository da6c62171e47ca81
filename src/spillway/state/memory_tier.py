"""The memory tier: images of runs, memory-mapped from a tmpfs directory.

An image is an uncompressed copy of the slices of one run that a processor serves. Any Python worker of the
host maps it without copying. Images are only a cache: the directory is named by the driver's token, whatever
is missing is read from the durable runs, and whatever the orders do not name is removed.

Invariant: an image is complete under its name (written aside, then renamed); its metadata says which groups
it has, and a note beside it, written before anything is freed, which of them it has no more. So a lost or
half-loaded tier can never change an answer.

To give memory back is work of the operating system, page by page. It goes on beside the caller, who may read
other groups meanwhile; nothing is stored before it is through, so the images never take more than they did.
"""

import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from spillway.model.group_set import GroupSet, from_hex, members, to_hex
from spillway.state.group import cut, flags
from spillway.state.punch import dead_ranges, punch
from spillway.state.run import Run, decode_with_metadata, read_run, write_segment
from spillway.state.segment import Segment
from spillway.state.storage import Storage, mapped_file

IMAGE = ".image"
FREED = ".freed"
LEAVING = ".leaving"
COARSE_BYTES = 16 << 10
"""Punching pays when the values of a range of rows in one column take at least this much."""
MOST_SHARE = 0.75
"""An image that loses more than this share of its groups is written anew."""
LEFT_SHARE = 0.25
"""What may stay in memory of all that a spill frees, in images that are too fine-grained to be punched."""


def sibling_bytes(directory: str) -> int:
    """The memory of the images in the directories beside this one."""
    own = Path(directory)
    try:
        beside = [one for one in own.parent.iterdir() if one.is_dir() and one != own]
    except FileNotFoundError:
        return 0
    return sum(MemoryTier(str(one), 1).resident_bytes() for one in beside)


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
    _opened: dict[Path, "_Image"] = field(default_factory=dict)
    """Images that were looked at and are still to be loaded: to open a file twice takes twice as long."""

    def open(self) -> None:
        """Look at all images, as `free` and `load` do."""
        self._opened = {path: self._open(path) for path in self._images()}

    def load(self, storage: Storage, run: Run, wanted: GroupSet) -> tuple[list[Segment], int]:
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
        loaded = Segment(whole.hashes, whole.columns, flags(missing, self.groups)).only_live(self.groups)
        segments.append(self.store(run, loaded, missing))
        return segments, run.bytes

    def store(self, run: Run, segment: Segment, contained: GroupSet) -> Segment:
        """Keep the segment as an image of the run, and give it back as mapped from there."""
        self.settle()
        path = self._new_path(_stem(run))
        self._write(path, segment, contained)
        return self._open(path).only(contained, self.groups)

    def _new_path(self, stem: str) -> Path:
        directory = Path(self.directory)
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{stem}.{uuid.uuid4().hex[:8]}{IMAGE}"

    def _write(self, path: Path, segment: Segment, contained: GroupSet) -> None:
        aside = path.with_suffix(".writing")
        with pa.OSFile(str(aside), "wb") as sink:
            write_segment(sink, segment, {"groups": to_hex(contained)}, None)
        aside.rename(path)

    def free(self, groups: GroupSet) -> None:
        """Begin to give back the memory of these groups in all images; `settle` waits for the end of it.

        Only images of this step's own runs may be there (`keep_only`): none of its attempts reads these
        groups in them.
        """
        self._before_bytes = self.resident_bytes()
        beside: list[Callable[[], None]] = []
        losses = []
        for path in self._images():
            image = self._opened[path] if path in self._opened else self._open(path)
            dead = image.contained & groups
            if dead and dead == image.contained:
                self._opened.pop(path, None)
                beside.append(self._retired(path))
            elif dead:
                losses.append(_Loss(path, image, dead))
        rewritten = _to_rewrite(losses)
        beside += [self._marked(loss) for loss in losses if loss not in rewritten]
        if beside:
            with_one = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spillway-free")
            self._freeing = with_one.submit(_all, beside)
            with_one.shutdown(wait=False)
        for loss in rewritten:
            self._rewrite(loss)

    def settle(self) -> None:
        """Wait until all that was freed is given back."""
        freeing, self._freeing = self._freeing, None
        if freeing is not None:
            freeing.result()
        if self._before_bytes:
            self.freed_bytes += self._before_bytes - self.resident_bytes()
            self._before_bytes = 0

    def discard(self, run: Run) -> None:
        """Remove the images of a run that another one stands for now."""
        for path in self._images(run):
            self._remove(path)

    def keep_only(self, runs: Sequence[Run]) -> None:
        """Remove the images of all other runs, and what killed attempts left half-written."""
        wanted = {_stem(run) for run in runs}
        for entry in _entries(self.directory):
            if entry.name.split(".", 1)[0] not in wanted or not entry.name.endswith((IMAGE, FREED)):
                Path(entry.path).unlink(missing_ok=True)

    def resident_bytes(self) -> int:
        """The memory that the images occupy, as the operating system allocates it."""
        return sum(entry.stat().st_blocks * 512 for entry in _entries(self.directory))

    def _rewrite(self, loss: "_Loss") -> None:
        """Replace an image by one with the groups that stay, where punching would leave too much behind."""
        contained = loss.image.contained & ~loss.dead
        left = loss.image.only(contained, self.groups).only_live(self.groups)
        self._write(self._new_path(loss.path.name.split(".", 1)[0]), left, contained)
        self._opened.pop(loss.path, None)
        self._remove(loss.path)

    def _marked(self, loss: "_Loss") -> Callable[[], None]:
        """Leave groups out of an image from now on; what is returned notes that, and gives memory back."""
        left = loss.image.contained & ~loss.dead
        self._opened[loss.path] = replace(loss.image, contained=left)
        return partial(_punch, loss, self.groups)

    def _images(self, run: Run | None = None) -> list[Path]:
        prefix = "" if run is None else _stem(run) + "."
        found = (entry.path for entry in _entries(self.directory) if entry.name.startswith(prefix))
        return [Path(path) for path in sorted(found) if path.endswith(IMAGE)]

    def _open(self, path: Path) -> "_Image":
        mapped = mapped_file(str(path))
        rows, metadata = decode_with_metadata(pa.BufferReader(mapped), str(path))
        return _Image(rows, from_hex(metadata[b"groups"].decode()) & ~_freed(path), mapped.address)

    def _retired(self, path: Path) -> Callable[[], None]:
        """Take an image out of use; what is returned gives its memory back."""
        leaving = path.with_suffix(LEAVING)
        path.rename(leaving)
        path.with_suffix(FREED).unlink(missing_ok=True)
        return partial(_release, leaving)

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        path.with_suffix(FREED).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Image:
    """An image as mapped."""

    rows: Segment
    contained: GroupSet
    address: int
    """Where the file begins in memory."""

    def only(self, groups: GroupSet, count: int) -> Segment:
        return Segment(self.rows.hashes, self.rows.columns, flags(groups, count))


def _all(work: Iterable[Callable[[], None]]) -> None:
    for one in work:
        one()


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
class _Loss:
    """What an image loses. Sizes are estimates: to look at the rows would take longer than to be off."""

    path: Path
    image: _Image
    dead: GroupSet

    @property
    def share(self) -> float:
        return self.dead.bit_count() / self.image.contained.bit_count()

    @property
    def bytes(self) -> float:
        return self.share * self.image.rows.nbytes

    @property
    def is_fine_grained(self) -> bool:
        """Whether the values of a group in a column are mostly smaller than what can be punched out."""
        columns = max(1, self.image.rows.columns.num_columns)
        return bool(self.bytes < COARSE_BYTES * columns * self.dead.bit_count())


def _to_rewrite(losses: Sequence[_Loss]) -> list[_Loss]:
    """The images that are copied without what they lose, instead of being punched.

    Those that lose most: there is little to copy, and the hashes of the others would stay. And those that are
    too fine-grained to be punched, unless they are a small part of all: they wait for the next merge.
    """
    fine = sum(loss.bytes for loss in losses if loss.is_fine_grained)
    much = fine > LEFT_SHARE * sum(loss.bytes for loss in losses)
    return [loss for loss in losses if loss.share > MOST_SHARE or (much and loss.is_fine_grained)]


def _punch(loss: _Loss, groups: int) -> None:
    loss.path.with_suffix(FREED).write_text(to_hex(_freed(loss.path) | loss.dead))
    rows = loss.image.rows
    ranges = dead_ranges(cut(rows.hashes, groups).tolist(), list(members(loss.dead)))
    punch(str(loss.path), loss.image.address, rows.columns, ranges)  # the hashes stay, in order


def _stem(run: Run) -> str:
    return run.name.rsplit("/", 1)[-1].split(".", 1)[0]


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
