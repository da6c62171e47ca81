"""The files of a Delta table by version: added rows are read once, anything else is refused by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kit.scans import native_scan
from spillway.errors import SourceError
from spillway.scan import read
from spillway.scan.files import DeltaFile, delta_additions, delta_snapshot, delta_version, file_splits

SCAN = native_scan("SELECT a.x, b.k FROM a JOIN b ON a.k = b.k", {"a": "k long, x string", "b": "k long"})


def append(root: Path, keys: list[int], values: list[str | None]) -> None:
    write_deltalake(root, pa.table({"k": keys, "x": values}), mode="append", partition_by=["x"])


def values(files: tuple[DeltaFile, ...]) -> list[str | None]:
    found = []
    for file in files:
        splits = file_splits(file.path, SCAN, partitions=file.partitions)
        assert isinstance(splits, tuple)
        assert all(split.file_bytes == file.bytes for split in splits)
        found += [row for split in splits for batch in read(SCAN, split) for row in batch["s0"].to_pylist()]
    return sorted(found, key=str)


def test_each_version_adds_its_files(tmp_path: Path) -> None:
    append(tmp_path, [1, 2, 3], ["a b", None, "c/d"])
    append(tmp_path, [4], ["a b"])
    assert delta_version(str(tmp_path)) == 1
    first, second = (delta_additions(str(tmp_path), version, version) for version in (0, 1))
    assert values(first) == [None, "a b", "c/d"]
    assert values(second) == ["a b"]
    assert [file.version for file in second] == [1]
    assert values(delta_additions(str(tmp_path), 0, 1)) == values(delta_snapshot(str(tmp_path), 1))
    assert delta_additions(str(tmp_path), 2, 1) == ()


def test_files_that_only_hold_the_same_rows_again_are_ignored(tmp_path: Path) -> None:
    for key in range(3):
        append(tmp_path, [key], ["a"])
    DeltaTable(tmp_path).optimize.compact()
    last = delta_version(str(tmp_path))
    assert last == 3
    assert delta_additions(str(tmp_path), last, last) == ()
    assert len(delta_snapshot(str(tmp_path), last)) == 1
    assert len(delta_snapshot(str(tmp_path), last - 1)) == 3


def rewrite(root: Path, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions of a commit, as a writer that we have not would write them."""
    path = root / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        change(action)
    path.write_text("\n".join(map(json.dumps, actions)))


def with_vector(action: dict[str, Any]) -> None:
    if "add" in action:
        vector = {
            "storageType": "u",
            "pathOrInlineDv": "x" * 20,
            "offset": 1,
            "sizeInBytes": 1,
            "cardinality": 1,
        }
        action["add"]["deletionVector"] = vector


def with_mapping(action: dict[str, Any]) -> None:
    if "metaData" in action:
        action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda root: DeltaTable(root).delete("k = 1"), "has removed rows"),
        (
            lambda root: write_deltalake(root, pa.table({"k": [9], "x": ["a"]}), mode="overwrite"),
            "has removed rows",
        ),
        (
            lambda root: write_deltalake(
                root, pa.table({"k": [9], "x": ["a"], "y": [1]}), mode="append", schema_mode="merge"
            ),
            "has a change of its columns",
        ),
        (lambda root: (append(root, [5], ["a"]), rewrite(root, 2, with_vector)), "has deletion vectors"),
    ],
)
def test_commits_that_do_more_than_add_rows_are_refused(
    tmp_path: Path, change: Callable[[Path], object], reason: str
) -> None:
    append(tmp_path, [1, 2], ["a", "a"])
    append(tmp_path, [3], ["b"])
    change(tmp_path)
    assert len(delta_additions(str(tmp_path), 0, 1)) == 2
    with pytest.raises(SourceError, match=rf"Delta table {tmp_path} {reason}.* in version 2; read") as caught:
        delta_additions(str(tmp_path), 2, 2)
    assert "\n" not in str(caught.value)


def test_tables_that_need_more_of_a_reader_are_refused(tmp_path: Path) -> None:
    append(tmp_path, [1], ["a"])
    rewrite(tmp_path, 0, with_mapping)
    with pytest.raises(SourceError, match=r"has column mapping in version 0; read"):
        delta_additions(str(tmp_path), 0, 0)


def test_a_table_or_version_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=rf"Delta table {tmp_path} cannot be read: .*; check its path"):
        delta_version(str(tmp_path))
    append(tmp_path, [1], ["a"])
    append(tmp_path, [2], ["a"])
    DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(SourceError, match=r"has lost the log of version 0 .*; restore it"):
        delta_additions(str(tmp_path), 0, 1)
