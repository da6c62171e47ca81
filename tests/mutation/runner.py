"""Runs the tests that concern a mutant, in a process forked from one in which all tests are collected.

    python tests/mutation/runner.py --seed 1 --count 300 --results build/mutants.json

First all tests run once, and every function is noted with the tests that call it and how long they took. A
mutant is applied in a forked process by exchanging the code of its function. Then the tests that call it run,
quick ones first, until one fails. What is known from an earlier run is not run again (`--survivors`,
`--fresh` do). `equivalent.toml` lists the mutants that change nothing, each with the reason.

Known limits: code outside functions is not changed. Calls in other processes are not noted, so tests that
start drivers or executors take no part. A mutant of what runs while modules are imported survives.
"""

import argparse
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutants import Change, changes, sampled

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "spillway"
TESTS = (
    "tests/unit",
    "tests/property",
    "tests/golden",
    "tests/maintain/test_aggregates.py",
    "tests/maintain/test_delta_source.py",
)
"""Quick ones; a PostgreSQL server for each mutant would take longer than its tests."""
PACKAGES = ("state", "manager", "maintain", "policy")
AREAS = {
    "probe": (
        "state/join/probe.py",
        "state/join/search.py",
        "state/join/matches.py",
        "state/rows/hash_filter.py",
        "state/join/production.py",
        "state/step/results.py",
    ),
    "clean-up": ("state/join/cleanup.py", "manager/cleanup.py", "state/rows/cursor.py"),
    "manifest": ("state/log/manifest.py", "state/log/manifest_log.py", "state/storage/document.py"),
    "expiry": ("state/rows/expiry.py",),
    "compensation": ("maintain/execute.py", "maintain/algebra.py", "maintain/slots.py"),
}
"""What must be right before all: at least 95 % of the mutants here must be found."""
OTHERS = "others"
EQUIVALENT = Path(__file__).parent / "equivalent.toml"
TEST_SECONDS = 45.0
"""Tests that together take longer than this are not all run for one mutant: the quickest are."""
_OUTCOMES = {0: "survived", 2: "inapplicable", 3: "timeout"}
"""By the exit code of a forked process; any other one is that of a test that failed, or of a crash."""
KILLED, SURVIVED, TIMEOUT, UNTESTED, INAPPLICABLE = (
    "killed",
    "survived",
    "timeout",
    "untested",
    "inapplicable",
)


@dataclass(frozen=True, slots=True)
class Called:
    """A test that calls a function."""

    test: str
    seconds: float


class Mutation:
    """The pytest plugin: takes the place of the loop over all tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.failed = self.reason = ""
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self.results: dict[str, dict[str, Any]] = {}
        path = Path(options.results)
        if path.exists() and not options.fresh:
            self.results = json.loads(path.read_text())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.functions = _functions()
        calls = self._calls(session, list(items.values()))
        chosen = list(_chosen(self.options, calls))
        again = (SURVIVED, UNTESTED, TIMEOUT) if self.options.survivors else ()
        done = {key for key, one in self.results.items() if one["outcome"] not in again}
        todo = [change for change in chosen if change.mutant.key not in done]
        print(f"{len(chosen)} mutants, {len(todo)} of them to run", flush=True)
        running: dict[int, tuple[Change, float, float, str]] = {}
        for change in todo:
            while len(running) >= self.options.processes:
                self._settle(running)
            tests = _tests(calls, change, items)
            if not tests:
                self._note(change, UNTESTED, "")
                continue
            limit = 60 + 6 * sum(one.seconds for one in tests)
            directory = tempfile.mkdtemp(prefix="spillway-mutant-")
            process = os.fork()
            if not process:
                self._child(session, change, [(items[one.test], one.seconds) for one in tests], directory)
            running[process] = change, time.monotonic(), limit, directory
        while running:
            self._settle(running)
        _report([self.results[change.mutant.key] for change in chosen])
        return True

    def _settle(self, running: dict[int, tuple[Change, float, float, str]]) -> None:
        """Wait until one of the processes has ended, or is over its time."""
        while True:
            for process, (change, start, limit, directory) in running.items():
                ended, status = os.waitpid(process, os.WNOHANG)
                late = time.monotonic() - start > limit
                if not ended and late:
                    _kill(process)
                    os.waitpid(process, 0)
                if not ended and not late:
                    continue
                del running[process]
                said = Path(directory) / "said"
                text = said.read_text() if said.exists() else f"ended with status {status}"
                outcome = TIMEOUT if not ended else _OUTCOMES.get(os.waitstatus_to_exitcode(status), KILLED)
                self._note(change, outcome, "" if outcome in (SURVIVED, TIMEOUT) else text)
                shutil.rmtree(directory, ignore_errors=True)
                return
            time.sleep(0.02)

    def _child(
        self, session: pytest.Session, change: Change, tests: list[tuple[pytest.Item, float]], directory: str
    ) -> None:
        """In the forked process: run the tests, and say by the exit code what became of the mutant."""
        os.setsid()
        said = Path(directory) / "said"
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        code = 1
        try:
            session.config._tmp_path_factory._given_basetemp = Path(directory) / "tmp"  # type: ignore[attr-defined]
            if not _exchange(change, self.functions):
                code = 2
            else:
                self._run(tests)
                code = 1 if self.failed else 0
                said.write_text(self.failed)
        except BaseException as error:
            said.write_text(repr(error))
        finally:
            os._exit(code)

    def _run(self, tests: Sequence[tuple[pytest.Item, float]]) -> None:
        deadline = [time.monotonic() + 60]

        def watch() -> None:
            while time.monotonic() < deadline[0]:
                time.sleep(0.2)
            os._exit(3)

        threading.Thread(target=watch, daemon=True).start()
        for number, (item, seconds) in enumerate(tests):
            following = tests[number + 1][0] if number + 1 < len(tests) else None
            deadline[0] = time.monotonic() + 30 + 6 * seconds
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed, self.reason = report.nodeid, report.longreprtext

    def _note(self, change: Change, outcome: str, by: str) -> None:
        self.results[change.mutant.key] = asdict(change.mutant) | {"outcome": outcome, "by": by}
        path = Path(self.options.results)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".writing").write_text(json.dumps(self.results, indent=1))
        path.with_suffix(".writing").rename(path)
        mutant = change.mutant
        print(f"{outcome:9} {mutant.path}:{mutant.line} {mutant.function}: {mutant.kind}", flush=True)
        if outcome not in (KILLED, TIMEOUT):
            print(f"          - {mutant.before}\n          + {mutant.after}", flush=True)

    def _calls(self, session: pytest.Session, items: list[pytest.Item]) -> dict[str, list[Called]]:
        """The tests that call each function. New and changed tests run once for that, in a forked process."""
        path = Path(self.options.results).with_suffix(".calls.json")
        known = json.loads(path.read_text()) if path.exists() and not self.options.trace else {}
        new = [
            item for item in items if known.get(item.nodeid, {}).get("stamp") != item.path.stat().st_mtime_ns
        ]
        if new:
            print(f"{len(new)} tests run once, to see which functions they call", flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            process = os.fork()
            if not process:
                self._trace(new, path, known)
            os.waitpid(process, 0)
            known = json.loads(path.read_text())
        calls: dict[str, list[Called]] = {}
        for test, found in known.items():
            for function in found["functions"] if found["passed"] else ():
                calls.setdefault(function, []).append(Called(test, found["seconds"]))
        return calls

    def _trace(self, items: list[pytest.Item], path: Path, known: dict[str, Any]) -> None:
        """In the forked process: note the calls of every test, and whether it passes as it should."""
        current: set[CodeType] = set()

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                current.add(frame.f_code)

        directory = tempfile.mkdtemp(prefix="spillway-trace-")
        try:
            os.setsid()
            items[0].config._tmp_path_factory._given_basetemp = Path(directory) / "tmp"  # type: ignore[attr-defined]
            for number, item in enumerate(items):
                following = items[number + 1] if number + 1 < len(items) else None
                current.clear()
                self.failed = ""
                threading.setprofile(note)
                sys.setprofile(note)
                start = time.monotonic()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                sys.setprofile(None)
                threading.setprofile(None)  # type: ignore[arg-type]
                known[item.nodeid] = {
                    "stamp": item.path.stat().st_mtime_ns,
                    "seconds": round(time.monotonic() - start, 3),
                    "passed": not self.failed,
                    "functions": sorted({_name(code) for code in current} - {""}),
                }
                if self.failed:
                    print(
                        f"fails without any mutant, and is left out: {item.nodeid}\n{self.reason}", flush=True
                    )
                if number % 10 == 0:
                    path.write_text(json.dumps(known))
            path.write_text(json.dumps(known))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            os._exit(0)


def _name(code: CodeType) -> str:
    """The outermost function of the package that this code is of; empty if it is not of the package."""
    if not code.co_filename.startswith(str(PACKAGE)):
        return ""
    path = Path(code.co_filename).relative_to(PACKAGE).as_posix()
    return f"{path}::{code.co_qualname.split('.<locals>')[0]}"


def _tests(calls: dict[str, list[Called]], change: Change, items: dict[str, Any]) -> list[Called]:
    found = [
        one for one in calls.get(f"{change.mutant.path}::{change.mutant.function}", ()) if one.test in items
    ]
    found.sort(key=lambda one: one.seconds)
    taken, seconds = [], 0.0
    for one in found:
        seconds += one.seconds
        if taken and seconds > TEST_SECONDS:
            break
        taken.append(one)
    return taken


def _chosen(options: argparse.Namespace, calls: dict[str, list[Called]]) -> Iterator[Change]:
    """The sample: half of it from the areas that must be right before all, as many from each."""
    found: dict[str, list[Change]] = {area: [] for area in (*AREAS, OTHERS)}
    for package in PACKAGES:
        for source in sorted((PACKAGE / package).rglob("*.py")):
            name = source.relative_to(PACKAGE).as_posix()
            found[_area(name)] += changes(source, name)
    print({area: len(every) for area, every in found.items()}, flush=True)
    each = options.count // (2 * len(AREAS))
    for area, every in found.items():
        if options.area and area not in options.area:
            continue
        yield from sampled(every, options.count // 2 if area == OTHERS else each, options.seed)


def _area(path: str) -> str:
    return next((area for area, paths in AREAS.items() if path in paths), OTHERS)


def _functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """The functions of the package that are there, by file, name and line. Then let garbage collection be."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(PACKAGE)):
            found.setdefault(_identity(one.__code__), []).append(one)
    gc.collect()
    gc.freeze()
    return found


def _identity(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _exchange(change: Change, functions: dict[tuple[str, str, int], list[FunctionType]]) -> bool:
    """Exchange the code of the function wherever it is; False if it is nowhere or does not fit."""
    code = change.code()
    found = functions.get(_identity(code), [])
    try:
        for function in found:
            function.__code__ = code
    except ValueError:  # it uses other variables of the functions around it
        return False
    return bool(found)


def _kill(process: int) -> None:
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(process, signal.SIGKILL)


def _report(results: list[dict[str, Any]]) -> None:
    known = tomllib.loads(EQUIVALENT.read_text())["equivalent"] if EQUIVALENT.exists() else []
    same = {(one["path"], one["function"], one["before"], one["after"]) for one in known}
    for area in (*AREAS, OTHERS):
        mine = [one for one in results if _area(one["path"]) == area and one["outcome"] != INAPPLICABLE]
        counts = Counter(
            "equivalent"
            if one["outcome"] in (SURVIVED, UNTESTED)
            and (one["path"], one["function"], one["before"], one["after"]) in same
            else one["outcome"]
            for one in mine
        )
        rest = len(mine) - counts["equivalent"]
        found = counts[KILLED] + counts[TIMEOUT]
        if rest:
            print(f"{area:13} {found} of {rest} found ({100 * found / rest:.1f} %), {dict(counts)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--results", default=str(ROOT / "build" / "mutants.json"))
    parser.add_argument("--area", action="append", choices=(*AREAS, OTHERS))
    parser.add_argument("--fresh", action="store_true", help="forget what is known from earlier runs")
    parser.add_argument("--trace", action="store_true", help="look again which tests call which functions")
    parser.add_argument("--survivors", action="store_true", help="run those again that survived")
    parser.add_argument("tests", nargs="*", default=TESTS)
    options = parser.parse_args()
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    os.chdir(ROOT)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:terminalreporter", "-p", "no:xdist", *options.tests]
    code = pytest.main(words, plugins=[Mutation(options)])
    sys.stdout.flush()
    os._exit(code)  # DuckDB's bindings have much to say about an ordinary end


if __name__ == "__main__":
    main()
