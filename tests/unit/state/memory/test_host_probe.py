"""The questions that every executor is asked before the first epoch, without Spark."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spillway.errors import CheckpointError
from spillway.state.memory.host_probe import HostAnswer, HostProbe
from spillway.state.memory.tier_directory import TierDirectory

EXECUTOR = str(os.getpid())
Answer = Callable[..., HostAnswer]


@pytest.fixture
def probe(tmp_path: Path) -> HostProbe:
    paths = (("checkpoint", str(tmp_path / "state")), ("sink", str(tmp_path / "out")))
    return HostProbe(paths, TierDirectory(str(tmp_path / "shm" / "query"), in_memory=False), room_bytes=1)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """An answer as a host of that name gives it."""

    def ask(probe: HostProbe, host: str = "h0") -> HostAnswer:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "gethostname", lambda: host)
            return probe.answer(EXECUTOR)

    return ask


def elsewhere(probe: HostProbe, root: Path) -> HostProbe:
    """The same questions on a host that has directories of its own under the same names."""
    return replace(probe, paths=tuple((use, str(root / Path(path).name)) for use, path in probe.paths))


def refusal(probe: HostProbe, *answers: HostAnswer) -> str:
    with pytest.raises(CheckpointError) as refused:
        probe.judge(answers)
    probe.end()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_hosts_that_share_all_pass_and_nothing_is_left(
    probe: HostProbe, answer: Answer, tmp_path: Path
) -> None:
    probe.begin()
    answers = [probe.answer(EXECUTOR), probe.answer("1")]
    probe.judge(answers)
    probe.end()
    assert [list((tmp_path / name).iterdir()) for name in ("state", "out")] == [[], []]


def test_a_host_with_another_checkpoint_is_named_and_writes_nothing(
    probe: HostProbe, answer: Answer, tmp_path: Path
) -> None:
    probe.begin()
    away = answer(elsewhere(probe, tmp_path / "other-disk"), "h1")
    text = refusal(probe, answer(probe), away)
    assert "host h1 does not see what the driver wrote to the checkpoint" in text
    assert "host h1 does not see what the driver wrote to the sink" in text
    assert text.count("does not see") == 2 and "all hosts must share it" in text
    assert not (tmp_path / "other-disk").exists()
    assert [list((tmp_path / name).iterdir()) for name in ("state", "out")] == [[], []]


def test_a_host_that_reads_a_copy_but_writes_elsewhere_is_found_by_its_nonce(
    probe: HostProbe, answer: Answer, tmp_path: Path
) -> None:
    probe.begin()
    shutil.copytree(tmp_path / "state", tmp_path / "copy" / "state")
    shutil.copytree(tmp_path / "out", tmp_path / "copy" / "out")
    away = answer(elsewhere(probe, tmp_path / "copy"), "h1")
    assert away.faults == ()
    text = refusal(probe, away)
    assert f"the driver on {socket.gethostname()} does not see what host h1 wrote to the checkpoint" in text


def test_a_host_that_reads_an_old_nonce_is_named(probe: HostProbe, answer: Answer, tmp_path: Path) -> None:
    probe.begin()
    away = elsewhere(probe, tmp_path / "copy")
    away.begin()
    for path in (tmp_path / "copy").rglob("*-driver"):
        path.write_text("old")
    assert "reads something else in the checkpoint" in refusal(probe, answer(away))


def test_a_host_with_too_little_room_is_named_with_the_executors_that_share_it(
    probe: HostProbe, answer: Answer
) -> None:
    probe = replace(probe, room_bytes=300 << 20)
    probe.begin()
    first = replace(answer(probe, "h1"), free_bytes=500 << 20)
    other = replace(answer(probe, "h2"), free_bytes=512 << 20)
    probe.judge([first, other])
    probe.judge([first, other, replace(first, tier_device=first.tier_device + 1)])  # another container of h1
    text = refusal(probe, first, other, first)
    assert text.startswith(f"host h1 has 500 MB free in {probe.tier.path}, but needs 600 MB for the memory")
    assert "h2" not in text


def test_an_answer_removes_what_an_earlier_life_and_dead_queries_left(probe: HostProbe) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    tier = Path(probe.tier.path)
    (tier / "000001" / "0000").mkdir(parents=True)
    (tier / "000001" / "0000" / "x.image").write_bytes(b"x")
    (tier / f"owner-{dead.pid}").touch()
    (tier / "owner-1").touch()  # the driver, on the same host
    (tier.parent / "another" / "000001").mkdir(parents=True)
    (tier.parent / "another" / f"owner-{dead.pid}").touch()
    (tier.parent / "living" / "000001").mkdir(parents=True)
    (tier.parent / "living" / "owner-1").touch()
    probe.begin()
    probe.answer(EXECUTOR)
    assert sorted(path.name for path in tier.iterdir()) == sorted(["owner-1", f"owner-{EXECUTOR}"])
    assert sorted(path.name for path in tier.parent.iterdir()) == ["living", "query"]
