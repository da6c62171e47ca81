"""Golden files: `pytest tests/golden --rewrite-golden` writes them; review the difference."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of this name beside the tests."""
    rewrite = request.config.getoption("--rewrite-golden", default=False)

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / name
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {name}; run pytest tests/golden --rewrite-golden"
        assert text == path.read_text(encoding="utf-8")

    return check
