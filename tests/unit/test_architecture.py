"""The shape of the code base, checked: who may import what, how long a file may be, what is public."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import spillway

PACKAGE = Path(spillway.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MAXIMUM_LINES = 400
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "core", "misc"})
SPARK_PACKAGES = frozenset({"pyspark", "py4j"})

# The public surface. A name is added here on purpose, together with its documentation.
PUBLIC_NAMES = frozenset({"Job", "Query", "Session", "SourceSpec", "SpillwayError", "View", "read_job"})


def module_id(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imported_packages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.module.split(".")[0]


def test_the_package_is_found() -> None:
    assert {"errors.py", "spark/session.py"} <= {module_id(path) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_module(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    if path.relative_to(PACKAGE).parts[0] != "spark":
        assert SPARK_PACKAGES.isdisjoint(imported_packages(tree)), "only spillway.spark imports pyspark"
    assert len(text.splitlines()) <= MAXIMUM_LINES, "split the file: it holds two things"
    assert VAGUE_NAMES.isdisjoint(path.relative_to(PACKAGE).with_suffix("").parts), "name it after its noun"
    if text.strip():
        assert ast.get_docstring(tree), "a module opens by saying what it is"


def test_public_names() -> None:
    exported = frozenset(getattr(spillway, "__all__", ()))
    assert exported == PUBLIC_NAMES
    assert all(hasattr(spillway, name) for name in exported)
