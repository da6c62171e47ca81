"""Tests mirror the source tree: whoever knows a package knows where its tests are."""

from pathlib import Path

import pytest

import spillway

PACKAGE = Path(spillway.__file__).parent
TESTS = Path(__file__).parents[1]


def test_every_directory_is_run(pytestconfig: pytest.Config) -> None:
    """They are listed by name, for their order."""
    directories = {f"tests/{path.relative_to(TESTS).parts[0]}" for path in TESTS.rglob("test_*.py")}
    assert set(pytestconfig.getini("testpaths")) == directories


@pytest.mark.parametrize("kind", ["unit", "property"])
def test_every_directory_of_tests_is_a_package(kind: str) -> None:
    directories = {path.parent.relative_to(TESTS / kind) for path in (TESTS / kind).rglob("*.py")}
    assert directories
    assert [str(found) for found in directories if not (PACKAGE / found / "__init__.py").is_file()] == []
