"""A worker that starts to serve a query first looks whether it sees what the driver wrote."""

import os
from pathlib import Path

import pytest

from spillway.errors import StateError
from spillway.spark.worker.processor import arrive


def test_a_worker_that_sees_the_driver_uses_its_tier(tmp_path: Path) -> None:
    (tmp_path / "state" / "owners").mkdir(parents=True)
    (tmp_path / "state" / "owners" / "000003.json").touch()
    (tmp_path / "staging").mkdir()
    tier = str(tmp_path / "shm" / "query" / "000003" / "0001")
    arrive(str(tmp_path / "state"), (str(tmp_path / "staging"),), tier)
    (owner,) = (tmp_path / "shm" / "query").iterdir()
    assert owner.name.startswith("owner-") and Path(f"/proc/{owner.name[6:]}").exists()


@pytest.mark.parametrize("missing", ["state", "staging"])
def test_a_worker_on_a_host_that_does_not_share_a_path_is_refused(tmp_path: Path, missing: str) -> None:
    (tmp_path / "state" / "owners").mkdir(parents=True)
    token = "000004" if missing == "state" else "000003"  # another driver's token is not enough
    (tmp_path / "state" / "owners" / f"{token}.json").touch()
    tier = str(tmp_path / "shm" / "query" / "000003" / "0001")
    message = (
        rf"host {os.uname().nodename} does not see what the driver wrote to {tmp_path}/{missing}: all hosts"
    )
    with pytest.raises(StateError, match=message):
        arrive(str(tmp_path / "state"), (str(tmp_path / "staging"),), tier)
    assert not (tmp_path / "shm").exists()
