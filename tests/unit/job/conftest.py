"""What tests of job files share."""

import pytest

from spillway import redaction


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that a test takes from the environment are hidden in that test only."""
    monkeypatch.setattr(redaction, "_SHOWN", {})
