"""The shape of the code base, checked: who may import what, how long a file may be, what is public."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import spillway

PACKAGE = Path(spillway.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
FRONTS = [path for path in MODULES if path.name == "__init__.py"]
MAXIMUM_LINES = 400
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "core", "misc"})
SPARK_PACKAGES = frozenset({"pyspark", "py4j"})

# The public surface. A name is added here on purpose, together with its documentation.
PUBLIC_NAMES = frozenset({"Job", "Query", "Session", "SourceSpec", "SpillwayError", "View", "read_job"})

OPERATOR_CLASS = re.compile(r"(Join|Tree|Aggregate|Frame|Graph|Keyed|Outer)\w*(Operator|Plan)")


def module_id(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imported_packages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.module.split(".")[0]


def classes_asked_for(tree: ast.Module) -> Iterator[str]:
    """The names of the classes that an `isinstance` or a `case` asks for."""
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        asked = node.args[1] if is_call else node.cls if isinstance(node, ast.MatchClass) else None
        for part in [] if asked is None else ast.walk(asked):
            if isinstance(part, ast.Name | ast.Attribute):
                yield ast.unparse(part).rpartition(".")[2]


def test_the_package_is_found() -> None:
    assert {"errors.py", "spark/session/session.py"} <= {module_id(path) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_module(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    if path.relative_to(PACKAGE).parts[0] not in ("spark", "lab"):
        assert SPARK_PACKAGES.isdisjoint(imported_packages(tree)), "only spark and lab import pyspark"
    assert len(text.splitlines()) <= MAXIMUM_LINES, "split the file: it holds two things"
    assert VAGUE_NAMES.isdisjoint(path.relative_to(PACKAGE).with_suffix("").parts), "name it after its noun"
    if text.strip():
        assert ast.get_docstring(tree), "a module opens by saying what it is"
    kinds = {name for name in classes_asked_for(tree) if OPERATOR_CLASS.fullmatch(name)}
    assert not kinds, "operators and plans answer for themselves, or a registry does by their kind"


def test_a_class_name_has_one_meaning() -> None:
    trees = (ast.parse(path.read_text()) for path in MODULES)
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    twice = {name for name, count in names.items() if count > 1 and not name.startswith("_")}
    assert twice == set()


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_variables_are_named_after_what_they_hold(path: Path) -> None:
    """No variable or parameter is called `one`."""
    nodes = ast.walk(ast.parse(path.read_text()))
    names = ((getattr(node, "id", getattr(node, "arg", None)), getattr(node, "lineno", 0)) for node in nodes)
    assert [line for name, line in names if name == "one"] == []


def package_of(module: str) -> str:
    return module.rpartition(".")[0]


def is_package(module: str) -> bool:
    return (PACKAGE.parent / module.replace(".", "/")).is_dir()


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def exported(package: str) -> set[str]:
    return set(getattr(import_module(package), "__all__", ()))


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_packages_are_entered_by_their_front(path: Path) -> None:
    """Another package gives what its `__init__` exports; modules are for their package and those below."""
    here = dotted(path) if path.name == "__init__.py" else package_of(dotted(path))
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("spillway"):
            continue
        assert node.module is not None
        if is_package(node.module):
            for alias in node.names:
                is_own = f"{here}.".startswith(f"{node.module}.")
                assert is_own or alias.name in exported(node.module), f"{node.module} has no {alias.name}"
        else:
            assert f"{here}.".startswith(f"{package_of(node.module)}."), f"{node.module} is not public"


@pytest.mark.parametrize("path", FRONTS, ids=module_id)
def test_front(path: Path) -> None:
    """It says what lives here, and exports nothing that is named like a module."""
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    modules = {entry.stem for entry in path.parent.iterdir() if entry.stem != "__init__"}
    assert exported(dotted(path)).isdisjoint(modules)
    if path.parent != PACKAGE:
        assert all(isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign) for node in tree.body), (
            "no code here"
        )


@pytest.mark.parametrize(
    ("statement", "most"),
    [("import spillway", 1), ("import spillway.scan", 76), ("import spillway.spark.worker.processor", 114)],
)
def test_start_up_loads_little(statement: str, most: int) -> None:
    """Every Python worker pays for what it imports."""
    code = f"{statement}; import sys; print(sum(name.startswith('spillway') for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) <= most


def test_public_names() -> None:
    assert exported("spillway") == PUBLIC_NAMES
    assert all(hasattr(spillway, name) for name in PUBLIC_NAMES)
