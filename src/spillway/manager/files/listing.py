"""Lists the files of an input as Spark's file source does.

Hidden names are left out (`_x`, `.x`, but not `_x=1`). With directories `column=value` all files below count,
else those directly in the path; `recursiveFileLookup` takes all files and no columns. A path may be a
pattern, whose matches are roots of their own. Files come in the order of their modification time.

Known limit: files of one time come in the order of their paths; Spark keeps the file system's order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from spillway.errors import SourceError
from spillway.manager.files.entry import FileEntry
from spillway.manager.files.glob import compiled, is_pattern, segments
from spillway.manager.files.options import ListingOptions
from spillway.manager.files.tree import FileTree, Found

METADATA_LOG = "_spark_metadata"
"""A directory with it was written by a stream of Spark, which says there what to read."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A directory with files, and the columns in names of directories between `top` and it."""

    path: str
    columns: tuple[tuple[str, str], ...]
    top: str
    files: tuple[Found, ...]
    is_root: bool


@dataclass(frozen=True, slots=True)
class _Way:
    """From a root down to a directory: as Spark does, the last columns in a row count."""

    path: str
    top: str
    columns: tuple[tuple[str, str], ...] = ()
    is_interrupted: bool = False

    def into(self, child: str) -> "_Way":
        path = f"{self.path}/{child}"
        name, mark, value = child.partition("=")
        if not mark:
            return _Way(path, self.top, self.columns, True) if self.columns else _Way(path, path)
        column = unquote(name), unquote(value)
        if self.is_interrupted:
            return _Way(path, self.path, (column,))
        return _Way(path, self.top, (*self.columns, column))


def has_metadata_log(options: ListingOptions, tree: FileTree) -> bool:
    """Whether a directory has its own list of files, which Spark reads instead; never for a pattern."""
    if is_pattern(options.path):
        return False
    return any(child.name == METADATA_LOG for child in tree.children(options.path))


class FileListing:
    """The files of one input, whenever they are asked for."""

    def __init__(self, options: ListingOptions, tree: FileTree) -> None:
        self._options = options
        self._tree = tree
        self._pattern = None if options.name_filter is None else compiled(options.name_filter)
        self._has_columns = not is_pattern(options.path) or options.base_path is not None
        self._leaves: list[_Leaf] = []
        self._listed: list[FileEntry] = []
        self._split: dict[str, tuple[list[Found], tuple[Found, ...], tuple[str, ...]]] = {}
        """By directory: what the tree gave, and of that the files and directories that count."""

    def files(self) -> list[FileEntry]:
        """All files that are there, in the order in which they are read; the same list if none is new."""
        leaves = [leaf for root in self._roots() for leaf in self._below(root)]
        leaves = leaves if self._options.recursive else _in_partitions(leaves)
        if self._is_unchanged(leaves):
            return self._listed
        found = {entry.path: entry for leaf in leaves for entry in self._entries(leaf)}
        newest_first = self._options.latest_first
        self._leaves = leaves
        self._listed = sorted(found.values(), key=lambda entry: entry.order, reverse=newest_first)
        return self._listed

    def _is_unchanged(self, leaves: list[_Leaf]) -> bool:
        pairs = zip(leaves, self._leaves, strict=False)
        return len(leaves) == len(self._leaves) and all(
            new.path == old.path and new.files is old.files for new, old in pairs
        )

    def _entries(self, leaf: _Leaf) -> Iterator[FileEntry]:
        columns = leaf.columns if self._has_columns and not self._options.recursive else ()
        for file in leaf.files:
            if self._pattern is None or self._pattern.fullmatch(file.name):
                yield FileEntry(f"{leaf.path}/{file.name}", file.size_bytes, file.modified_ms, columns)

    def _roots(self) -> list[str]:
        path = self._options.path
        if not is_pattern(path):
            return [path]
        scheme, mark, rest = path.rpartition("://")
        names = segments(rest)
        bucket = names.pop(0) if mark else ""
        roots = [f"{scheme}{mark}{bucket}"]
        for name in names:
            if not is_pattern(name):
                roots = [f"{root}/{name}" for root in roots]
                continue
            matches = compiled(name).fullmatch
            roots = [
                f"{root}/{child.name}"
                for root in roots
                for child in self._tree.children(root or "/")
                if matches(child.name)
            ]
        return roots

    def _below(self, root: str) -> list[_Leaf]:
        (itself,) = self._tree.look([root])
        if itself is None:
            return []
        if not itself.is_directory:
            parent = self._way(root.rpartition("/")[0])
            files = () if _is_hidden(itself.name) else (itself,)
            return [_Leaf(parent.path, parent.columns, parent.top, files, True)]
        if has_metadata_log(self._options, self._tree):
            raise SourceError(
                f"{root} has a directory {METADATA_LOG}: a stream of Spark writes the files and lists them "
                "there; start with a new checkpoint directory, then Spark reads that list"
            )
        return list(self._walk(self._way(root), is_root=True))

    def _way(self, root: str) -> _Way:
        """To a root; directories between the base path, if there is one, and the root count."""
        base = self._options.base_path
        if base is None or not root.startswith(f"{base}/"):
            return _Way(root, root)
        way = _Way(base, base)
        for name in root.removeprefix(f"{base}/").split("/"):
            way = way.into(name)
        return way

    def _walk(self, way: _Way, *, is_root: bool = False) -> Iterator[_Leaf]:
        """The directories with files below one, itself included."""
        files, directories = self._shown(way.path)
        if files:
            yield _Leaf(way.path, way.columns, way.top, files, is_root)
        for child in directories:
            yield from self._walk(way.into(child))

    def _shown(self, directory: str) -> tuple[tuple[Found, ...], tuple[str, ...]]:
        """The files and directories in a directory that are not hidden; the same ones if nothing changed."""
        children = self._tree.children(directory)
        before = self._split.get(directory)
        if before is not None and before[0] is children:
            return before[1:]
        shown = [child for child in children if not _is_hidden(child.name)]
        files = tuple(child for child in shown if not child.is_directory)
        directories = tuple(child.name for child in shown if child.is_directory)
        self._split[directory] = children, files, directories
        return files, directories


def _in_partitions(leaves: list[_Leaf]) -> list[_Leaf]:
    """All leaves if their directories name columns, else the roots alone.

    Spark reads only a part of the files if some are in such directories and others are not; that is refused.
    """
    first = next((leaf for leaf in leaves if leaf.columns), None)
    if first is None:
        return [leaf for leaf in leaves if leaf.is_root]
    names = [name for name, _ in first.columns]
    for leaf in leaves:
        if leaf.top != first.top or [name for name, _ in leaf.columns] != names:
            raise SourceError(
                f"the directories {first.path} and {leaf.path} do not name the same columns; move the files "
                "of one of them elsewhere, so that all have the same directories column=value"
            )
    return leaves


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")
