"""A file of an input, and the files that one batch takes in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file as a listing found it. A file is known by its path."""

    path: str
    """An absolute path on this machine, or an address such as `s3://bucket/data/a.parquet`."""
    size_bytes: int
    modified_ms: int
    """Milliseconds since 1970, as in Spark."""
    partitions: tuple[tuple[str, str | None], ...] = ()
    """Columns in the names of its directories, outermost first, each with the text of its value."""

    @property
    def order(self) -> tuple[int, str]:
        """Files are read in the order in which they came."""
        return self.modified_ms, self.path


@dataclass(frozen=True, slots=True)
class FileBatch:
    """What the epoch of a batch reads: per input its new files, none for an input without any."""

    batch_id: int
    files: tuple[tuple[FileEntry, ...], ...]

    @property
    def size_bytes(self) -> int:
        return sum(entry.size_bytes for entries in self.files for entry in entries)
