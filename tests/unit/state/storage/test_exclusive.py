"""Exclusive creation: of several writers one wins, on every kind of store, or the store is refused."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from obstore.store import LocalStore, MemoryStore

from spillway.errors import CheckpointError, StateError
from spillway.manager.checkpoint import Checkpoint, Identity
from spillway.manager.race_probe import require_one_winner
from spillway.state.log.manifest_log import ManifestLog
from spillway.state.storage.object_store import open_store, put_new
from spillway.state.storage.storage import Storage

IDENTITY = Identity("f00d", "SELECT 1", (("bigint",),), 8)
WRITERS = 4


def raced(create: Callable[[str, bytes], bool], races: int = 20) -> list[list[int]]:
    """Which writers were told that they won, race by race."""
    start = threading.Barrier(WRITERS)

    def write(writer: int) -> list[bool]:
        won = []
        for race in range(races):
            start.wait()
            won.append(create(f"race/{race}", b"%d" % writer))
        return won

    with ThreadPoolExecutor(max_workers=WRITERS) as pool:
        told = list(pool.map(write, range(WRITERS)))
    return [[writer for writer in range(WRITERS) if told[writer][race]] for race in range(races)]


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_conditional_puts_have_one_winner(kind: str, tmp_path: Path) -> None:
    store = LocalStore(tmp_path) if kind == "local" else MemoryStore()
    winners = raced(lambda name, data: put_new(store, name, data))
    assert [len(won) for won in winners] == [1] * len(winners)
    for race, (winner,) in enumerate(winners):
        assert bytes(store.get(f"race/{race}").bytes()) == b"%d" % winner


@pytest.mark.parametrize("where", ["local", "s3"])
def test_a_storage_has_one_winner(where: str, tmp_path: Path, s3_server: Callable[..., Any]) -> None:
    root = str(tmp_path) if where == "local" else s3_server().uri("bucket/state")
    winners = raced(lambda name, data: Storage(root).create_exclusive(name, data))
    assert [len(won) for won in winners] == [1] * len(winners)
    require_one_winner(Storage(root))
    assert len(Storage(root).list()) == len(winners)


def test_drivers_on_s3_never_share_a_token(s3_server: Callable[..., Any]) -> None:
    root = s3_server().uri("bucket/state")
    with ThreadPoolExecutor(max_workers=4) as pool:
        logs = list(pool.map(lambda _: ManifestLog(Storage(root)), range(12)))
    assert sorted(log.token for log in logs) == list(range(1, 13))


def test_a_checkpoint_on_s3_has_one_id(s3_server: Callable[..., Any]) -> None:
    server = s3_server()
    with ThreadPoolExecutor(max_workers=4) as pool:
        opened = list(pool.map(lambda _: Checkpoint(server.uri("bucket/state"), IDENTITY), range(4)))
    assert len({checkpoint.query_id for checkpoint in opened}) == 1
    assert [name for name, body in server.objects.items() if body] == ["bucket/state/query.json"]


def test_a_store_on_which_both_win_is_refused(s3_server: Callable[..., Any]) -> None:
    server = s3_server(conditional=False)
    winners = raced(lambda name, data: Storage(server.uri("bucket/state")).create_exclusive(name, data), 3)
    assert [len(won) for won in winners] == [WRITERS] * 3  # what the probe is there to find
    server.objects.clear()
    with pytest.raises(CheckpointError, match=r"told 3 of 3 writers .* use another store") as refused:
        Checkpoint(server.uri("bucket/state"), IDENTITY)
    assert "\n" not in str(refused.value)
    assert [name for name, body in server.objects.items() if body] == []  # only the marker of a directory


def test_a_store_without_conditional_puts_is_refused() -> None:
    with pytest.raises(
        StateError, match=r"hdfs://host/state cannot hold .* use a shared directory, s3://"
    ) as refused:
        open_store("hdfs://host/state")
    assert "\n" not in str(refused.value)


def test_a_store_that_does_not_answer_is_one_line() -> None:
    store = Storage("s3://key:secret@bucket/x?endpoint_override=127.0.0.1:1&scheme=http&region=eu-west-1")
    with pytest.raises(StateError, match=r"cannot create s3://.*/x/a\?.*error sending request") as failed:
        store.create_exclusive("a", b"")
    assert "\n" not in str(failed.value)
