"""The sampler of mutants itself: what it changes, what it leaves alone, and that its code runs."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = '''
LIMIT = 3

class Box:
    def fits(self, size: int = 2) -> bool:
        """Text."""
        assert size < 9
        if size < 0:
            raise ValueError(f"{size + 1} is negative")
        return size + 1 <= LIMIT and not self.full

    full = False
'''


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", Path(__file__).parent / "mutants.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


def test_a_function_is_changed_in_one_place(mutants: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "box.py"
    source.write_text(SOURCE)
    found = list(mutants.changes(source, "box.py"))
    assert {one.mutant.function for one in found} == {"Box.fits"}
    pairs = [(one.mutant.kind, one.mutant.after) for one in found]
    assert sorted(pairs) == [
        ("arithmetic", "return size - 1 <= LIMIT and (not self.full)"),
        ("boolean", "return size + 1 <= LIMIT or not self.full"),
        ("comparison", "if size <= 0: pass"),
        ("comparison", "if size >= 0: pass"),
        ("comparison", "return size + 1 < LIMIT and (not self.full)"),
        ("comparison", "return size + 1 > LIMIT and (not self.full)"),
        ("constant", "if size < 1: pass"),
        ("constant", "return size + 2 <= LIMIT and (not self.full)"),
        ("negation", "return size + 1 <= LIMIT and self.full"),
        ("statement left out", "pass"),
        ("swapped branches", "if not size < 0: pass"),
    ]
    assert len({one.mutant.key for one in found}) == len(found)


def test_a_mutant_runs_in_place_of_its_function(mutants: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "box.py"
    source.write_text(SOURCE)
    space: dict[str, type] = {}
    exec(compile(SOURCE, str(source), "exec"), space)
    box = space["Box"]()
    answers = {}
    for change in mutants.changes(source, "box.py"):
        if not change.mutant.after.startswith("if"):
            space["Box"].fits.__code__ = change.code()
            answers[change.mutant.after] = [box.fits(1), box.fits(2), box.fits(3)]
    assert answers["return size + 1 < LIMIT and (not self.full)"] == [True, False, False]
    assert answers["return size - 1 <= LIMIT and (not self.full)"] == [True, True, True]
    assert answers["pass"] == [True, True, False]


def test_a_sample_is_the_same_for_the_same_seed(mutants: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "box.py"
    source.write_text(SOURCE)
    found = list(mutants.changes(source, "box.py"))
    keys = [[one.mutant.key for one in mutants.sampled(found, 5, seed)] for seed in (1, 1, 2)]
    assert keys[0] == keys[1] != keys[2] and len(set(keys[0])) == 5
