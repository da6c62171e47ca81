"""What tells the files of a table's version from those of another history of the same table.

Data files never change and their names are not used again, so the table's id and the names of its files
identify a version of a Delta table; it is the same after a restore if no file of it has gone. Files of
Parquet directories may be overwritten under the same name: these are identified by size and time too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from deltalake import DeltaTable


def delta_identity(table: DeltaTable) -> str:
    """Of a Delta table at the version that it was opened at."""
    names = (uri.removeprefix(table.table_uri.removeprefix("file://")) for uri in table.file_uris())
    return f"{table.metadata().id} {_digest(names)}"


def files_identity(files: Iterable[str]) -> str:
    """Of some files; a missing one raises FileNotFoundError."""
    stamps = []
    for file in files:
        found = Path(file).stat()
        stamps.append(f"{Path(file).name} {found.st_size} {found.st_mtime_ns}")
    return _digest(stamps)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:32]
