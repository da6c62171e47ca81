"""Directories that a start creates, and that a refused start removes again.

Only directories that were missing before, and only while they are empty: nothing of the user's is touched.
"""

from pathlib import Path

from spillway.state.storage.storage import Storage


class NewDirectories:
    """What is missing now of a local root and its parents, deepest first; nothing of a remote one."""

    def __init__(self, storage: Storage) -> None:
        local = storage.local_path()
        here = None if local is None else Path(local)
        self._missing: list[Path] = []
        while here is not None and not here.exists():
            self._missing.append(here)
            here = here.parent

    def remove_empty(self) -> None:
        for directory in self._missing:
            if directory.is_dir():
                if any(directory.iterdir()):
                    return
                directory.rmdir()
