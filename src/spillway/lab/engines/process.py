"""An engine in its own process, with memory sampling and a time limit.

It starts with its first turn and stays warm until it is closed, so engines can take turns on a machine whose
speed changes. Between its turns it is paused: Spark's state stores write snapshots long after the query has
ended, and a run beside that took 17 s instead of 12. For the same reason a turn begins only when earlier
writes have reached the disks.

The protocol: for each line of its input the program runs once, and its answer is the next line of its output
that is a JSON object (see `serve`); it ends with its input.

Invariant: when `close` returns, no process of the engine's tree is left. An engine that fails, ends without
an answer or takes too long still gives a result (`finished` is false, `note` says why), so one bad peer does
not cost the metrics of the others. Known limit: a descendant that is born and orphaned between two memory
samples is not found.
"""

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO

import psutil

from spillway.errors import JobError
from spillway.lab.engines.process_memory import ProcessMemory
from spillway.lab.engines.result import PeerResult, parse_answer
from spillway.lab.engines.result_sum import ResultSum, output_sum

GRACE_SECONDS = 240.0
"""Time for the start and warm-up of an engine, in addition to the limit of its run."""
STOP_SECONDS = 10.0  # a JVM needs time to delete its scratch directories
_NOTE_CHARACTERS = 300


def serve(run: Callable[[], PeerResult]) -> None:
    """The program's side: one run and one answer per line of input."""
    for _ in sys.stdin:
        sys.stdout.write(run().to_json() + "\n")
        sys.stdout.flush()


def run_subprocess(
    argv: Sequence[str],
    limit_seconds: float | None = None,
    *,
    engine: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> PeerResult:
    """One run of an engine; its whole tree is stopped after `limit_seconds`."""
    process = EngineProcess(argv, engine=engine, environ=environ)
    try:
        result = process.turn(limit_seconds)
    finally:
        note = process.close()
    return replace(result, finished=False, note=result.note or note) if note else result


class EngineProcess:
    """`engine` names the results; by default the answer does, or else the program's name."""

    def __init__(
        self, argv: Sequence[str], *, engine: str | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._argv = list(argv)
        self._engine = engine
        self._environ = environ
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._seen: dict[int, psutil.Process] = {}
        self._over = False

    def __enter__(self) -> "EngineProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def turn(self, limit_seconds: float | None = None) -> PeerResult:
        """One more run. After one that did not finish the engine is closed."""
        os.sync()
        began = time.monotonic()
        if self._process is not None:
            self._each(psutil.Process.resume)
        process = self._process or self._start()
        with ProcessMemory(process.pid) as memory:
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # the process has ended, and so has its output
                process.stdin.write("\n")
                process.stdin.flush()
            try:
                line = self._answer(limit_seconds)
            except queue.Empty:
                line, self._over = None, True
            command_seconds = time.monotonic() - began
            memory.sample()
        self._seen |= memory.seen
        result = self._failed(limit_seconds) if line is None else self._read_answer(line)
        if result.finished:
            self._each(psutil.Process.suspend)
        else:
            self.close()
        return replace(
            result,
            command_seconds=command_seconds,
            peak_rss_bytes=memory.peak_rss_bytes,
            peak_pss_bytes=memory.peak_pss_bytes,
        )

    def close(self) -> str:
        """End the engine; returns how it failed, if it did."""
        if self._process is None:
            return ""
        self._each(psutil.Process.resume)
        process, self._process = self._process, None
        assert process.stdin is not None and self._errors is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        if not self._over:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        code = process.poll()
        _stop(list(self._seen.values()))
        process.wait()
        with self._errors as errors:
            return "" if self._over or not code else _failure(code, errors)

    def _each(self, act: Callable[[psutil.Process], None]) -> None:
        """Pause every process of the tree, or resume it."""
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess):
                act(process)

    def _start(self) -> subprocess.Popen[str]:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=self._environ, start_new_session=True, text=True,
        )  # fmt: skip
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        return self._process

    def _read(self, out: IO[str]) -> None:
        with out:
            for line in out:
                self._lines.put(line)
        self._lines.put(None)

    def _answer(self, limit_seconds: float | None) -> str | None:
        """The next line that is a JSON object, None at the end; `queue.Empty` after the time limit."""
        until = None if limit_seconds is None else time.monotonic() + limit_seconds
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            line = self._lines.get(timeout=left)
            if line is None or line.startswith("{"):
                return line

    def _failed(self, limit_seconds: float | None) -> PeerResult:
        said = f"stopped after {limit_seconds:g} s" if self._over else self.close()
        return self._nothing(said or "its output has no JSON object")

    def _nothing(self, note: str) -> PeerResult:
        name = self._engine if self._engine is not None else Path(self._argv[0]).name
        return PeerResult(name, 0, 0, 0.0, finished=False, note=note)

    def _read_answer(self, line: str) -> PeerResult:
        try:
            answer = parse_answer(line)
        except JobError as error:
            return self._nothing(str(error))
        output = str(answer.get("output", "")) if answer.get("finished", True) else ""
        columns = tuple(str(name) for name in answer.get("output_columns", ()))
        try:
            found = output_sum(Path(output), columns) if output else ResultSum(int(answer["results"]), "")
        except JobError as error:
            return self._nothing(str(error))
        return PeerResult(
            engine=str(self._engine or answer["engine"]),
            rows_in=int(answer["rows_in"]),
            results=found.rows if columns else int(answer["results"]),
            seconds=float(answer["seconds"]),
            epoch_seconds=tuple(float(seconds) for seconds in answer["epoch_seconds"]),
            cpu_seconds=None if answer.get("cpu_seconds") is None else float(answer["cpu_seconds"]),
            finished=bool(answer.get("finished", True)),
            note=str(answer.get("note", "")),
            progress=tuple((float(seconds), int(results)) for seconds, results in answer.get("progress", ())),
            journal=str(answer.get("journal", "")),
            output=output,
            output_columns=columns,
            checksum=found.checksum,
        )


def _stop(tree: Sequence[psutil.Process]) -> None:
    """End the rest of a process tree: first terminate, then kill."""
    left = [process for process in tree if process.is_running()]
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                ask(process)
        _, left = psutil.wait_procs(left, timeout=STOP_SECONDS)
        if not left:
            return


def _failure(code: int, errors: IO[str]) -> str:
    errors.seek(0)
    lines = [line for line in errors.read().splitlines() if line.strip()]
    said = lines[-1].strip()[:_NOTE_CHARACTERS] if lines else "it said nothing"
    return f"ended with code {code}: {said}"
