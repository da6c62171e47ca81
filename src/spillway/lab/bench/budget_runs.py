"""The runs of one workload under several budgets: each variant in its own warm process, in turns.

Invariant: a variant that did not finish gets no further turn, and no process is left when the runs end.
Known limit: every process has its JVM, so six variants hold six.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from spillway.lab.engines import GRACE_SECONDS, EngineProcess, PeerResult, median_run
from spillway.manager.journal import EpochEntry, read_journal


class BudgetRuns:
    """The processes of the variants, and what their turns gave so far."""

    def __init__(self, limit_seconds: float, note: Callable[[str], None]) -> None:
        self._limit_seconds, self._note = limit_seconds, note
        self._taken: dict[str, list[PeerResult]] = {}
        self._processes: dict[str, EngineProcess] = {}
        self._open = ExitStack()

    def __enter__(self) -> "BudgetRuns":
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.close()

    def turn(
        self, name: str, argv: Sequence[str], check: Callable[[PeerResult], None] = lambda _: None
    ) -> PeerResult:
        """One run of a variant; `check` sees its output before that is removed."""
        taken = self._taken.setdefault(name, [])
        if taken and not taken[-1].finished:
            return taken[-1]
        if name not in self._processes:
            self._processes[name] = self._open.enter_context(EngineProcess(argv, engine=name))
        self._note(f"running {name}")
        result = self._processes[name].turn(self._limit_seconds + GRACE_SECONDS)
        taken.append(result)
        self._note(result_line(result))
        if result.output:
            check(result)
            shutil.rmtree(result.output)  # many runs would fill a disk
        return result

    def results(self) -> list[PeerResult]:
        """One result per variant: the run of median time."""
        return [median_run(taken) for taken in self._taken.values()]

    def journals(self) -> dict[str, list[EpochEntry]]:
        """The epochs of the runs in `results`, also of one that was stopped at its limit."""
        return {
            result.engine: list(read_journal(Path(result.journal))) if result.journal else []
            for result in self.results()
        }


def result_line(result: PeerResult) -> str:
    cpu = "" if result.cpu_seconds is None else f" ({result.cpu_seconds:.1f} of processors)"
    line = f"{result.engine}: {result.seconds:.1f} s{cpu}, {result.results:,} results"
    return f"{line} ({result.note})" if result.note else line
