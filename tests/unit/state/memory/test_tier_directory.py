"""A memory tier that cannot be created."""

from pathlib import Path

import pytest

from spillway.errors import StateError
from spillway.state.memory.tier_directory import choose_directory


def test_a_tier_that_cannot_be_created_is_named_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    told = (
        r"cannot create the memory tier in .*/file/spillway-\d+/q: .*; give another directory in \[run\] tier"
    )
    with pytest.raises(StateError, match=told):
        choose_directory(str(tmp_path / "file"), "q", None).claim()
