"""Checkpoints that an earlier version wrote go on to the exact answer."""

from pathlib import Path

import pytest

from fixtures.checkpoints import KINDS, resume


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_checkpoint_goes_on(kind: str, tmp_path: Path) -> None:
    player = resume(kind, tmp_path)
    assert player.engine.manifest.counters.results_runtime > 0
