"""Storage: names, whole-file writes, exclusive creation, and errors in one line."""

import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import CheckpointError, StateError
from spillway.state.storage.checksum import crc32
from spillway.state.storage.storage import Storage


@pytest.fixture(params=["local", "file-uri", "remote"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return Storage(str(tmp_path / "root"))
    if request.param == "file-uri":
        return Storage(f"file://{tmp_path}/root")
    return Storage(request.getfixturevalue("s3_server")().uri("bucket/my%20data/root"))


def test_what_is_written_is_read_back(storage: Storage) -> None:
    storage.write("a/b/one", b"first")
    storage.write("a/b/one", [b"sec", pa.py_buffer(b"on"), memoryview(b"d")])
    assert storage.read("a/b/one").to_pybytes() == b"second"
    assert storage.size("a/b/one") == 6
    assert storage.exists("a/b/one") and storage.exists("a/b") and not storage.exists("a/b/two")


def test_exclusive_creation_keeps_the_first(storage: Storage) -> None:
    assert storage.create_exclusive("manifest/1", b"first")
    assert not storage.create_exclusive("manifest/1", b"second")
    assert storage.read("manifest/1").to_pybytes() == b"first"
    assert storage.list() == ["manifest/1"]


def test_listing_is_by_prefix_and_sorted(storage: Storage) -> None:
    for name in ("runs/b", "runs/a/2", "runs/a/1", "runs-old/x", "manifest-2", "manifest-1"):
        storage.write(name, b"")
    assert storage.list("runs/") == ["runs/a/1", "runs/a/2", "runs/b"]
    assert storage.list("runs") == ["runs-old/x", "runs/a/1", "runs/a/2", "runs/b"]
    assert storage.list("runs/a/1") == ["runs/a/1"]
    assert storage.list("manifest-") == ["manifest-1", "manifest-2"]
    assert storage.list("none/") == []
    assert len(storage.list()) == 6
    assert storage.entries() == ["manifest-1", "manifest-2", "runs", "runs-old"]
    assert storage.entries("runs") == ["a", "b"] and storage.entries("none") == []


def test_delete_and_move(storage: Storage) -> None:
    storage.make_directories("to")
    storage.write("from/x", b"x")
    storage.write("from/y", b"y")
    storage.move("from/x", "to/x")
    storage.delete(["from/y", "from/never"])
    assert storage.list() == ["to/x"]


def test_streams(storage: Storage) -> None:
    with storage.open_output("runs/r1") as file:
        file.write(b"x" * 3_000_000)
    with storage.open_input("runs/r1") as file:
        assert file.read() == b"x" * 3_000_000
    with storage.open_input("runs/r1", memory_map=False) as file:
        assert file.read(3) == b"xxx"


def test_missing_files_are_state_errors_with_their_name(storage: Storage) -> None:
    for action in (storage.read, storage.size, storage.open_input):
        with pytest.raises(StateError, match=r"root/none.*does not exist"):
            action("none")
    with pytest.raises(StateError):
        storage.move("none", "other")


@pytest.mark.parametrize("name", ["../x", "a/../x", "/etc/passwd", "a//b", "./a", "a/.", "a\\b", "a/"])
def test_names_outside_the_root_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StateError, match="not a name below"):
        Storage(str(tmp_path)).write(name, b"")


def test_pickle_holds_the_root_alone_and_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage("relative")
    storage.write("x", b"1")
    payload = pickle.dumps(storage)
    monkeypatch.chdir("/")
    copy = pickle.loads(payload)
    assert copy.root == str(tmp_path / "relative")
    assert copy.read("x").to_pybytes() == b"1"


def test_local_files_are_mapped(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write("x", b"data")
    opened = storage.open_input("x")
    with (tmp_path / "x").open("r+b") as file:
        file.write(b"D")
    assert opened.read() == b"Data"  # read before, it would be the old content
    assert storage.local_path("x") == str(tmp_path / "x")


def test_addresses() -> None:
    assert Storage("/data/out/").uri("a/b") == "/data/out/a/b"
    assert Storage("file:///data/my%20out").root == "/data/my out"
    remote = Storage("s3://bucket/out/?region=eu-west-1")
    assert remote.uri("a") == "s3://bucket/out/a?region=eu-west-1"
    assert remote.local_path("a") is None


def test_an_unknown_filesystem_is_one_line() -> None:
    with pytest.raises(StateError, match="cannot open nosuch://x") as caught:
        Storage("nosuch://x").read("a")
    assert "\n" not in str(caught.value)
    with pytest.raises(CheckpointError, match="cannot write to nosuch://x"):
        Storage("nosuch://x").check_writable()


def test_check_writable_leaves_nothing(storage: Storage) -> None:
    storage.check_writable()
    assert storage.entries() == []


def test_check_writable_names_path_and_cause(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"cannot write to .*/file/sub: .*[Nn]ot a directory") as caught:
        Storage(str(tmp_path / "file" / "sub")).check_writable()
    assert "\n" not in str(caught.value)


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write("x", b"old")
    with pytest.raises(TypeError):
        storage.write("x", [b"new", 7])  # type: ignore[list-item]
    (tmp_path / "directory").mkdir()
    with pytest.raises(StateError, match="cannot write"):
        storage.write("directory", b"new")
    assert storage.read("x").to_pybytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "x"]


def test_leftovers_of_killed_writers_are_invisible_and_deletable(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write("a/x", b"")
    (tmp_path / "a" / ".tmp-y-123").write_bytes(b"half")
    assert storage.list() == ["a/x"] and storage.entries("a") == ["x"]
    assert storage.delete_temporaries("a/") == 1
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x"]


def test_sync_writes_the_same_file(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write("a/x", b"1", sync=True)
    assert storage.create_exclusive("a/y", b"2", sync=True)
    assert storage.read("a/x").to_pybytes() + storage.read("a/y").to_pybytes() == b"12"


def test_one_of_many_creators_wins_and_none_sees_a_part(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    block = 1 << 20
    for turn in range(10):
        name, barrier, won, seen = f"m/{turn}", threading.Barrier(8), [], []

        def create(
            number: int,
            name: str = name,
            barrier: threading.Barrier = barrier,
            won: list[int] = won,
            seen: list[bytes] = seen,
        ) -> None:
            barrier.wait()
            if storage.create_exclusive(name, bytes([number]) * block):
                won.append(number)
            else:
                seen.append(storage.read(name).to_pybytes())

        threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert seen == [bytes(won) * block] * 7
    assert len(list((tmp_path / "m").iterdir())) == 10


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_checksum_does_not_depend_on_the_cuts(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    assert crc32(parts) == crc32(whole) == crc32([pa.py_buffer(part) for part in parts])
    assert crc32(parts[1:], crc32(parts[:1])) == crc32(whole)


def test_a_full_disk_names_the_file_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/dev/full")
    told = rf"cannot write {tmp_path}/a: No space left on device; free some space there"
    with pytest.raises(StateError, match=told), Storage(str(tmp_path)).output("a") as file:
        file.write(b"x" * 100_000)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot read .*/none: it does not exist; restore it from a backup"):
        Storage(str(tmp_path)).read("none")
