"""Peers as processes: answers, failures, limits and memory, with small stand-ins for engines."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from spillway.errors import SourceError
from spillway.lab.bench.join import in_turns
from spillway.lab.engines.data import write_join_data
from spillway.lab.engines.peers import duckdb_argv, spark_argv
from spillway.lab.engines.process import EngineProcess, run_subprocess
from spillway.lab.engines.process_memory import ProcessMemory, read_pss
from spillway.lab.engines.result import PeerResult

pytestmark = pytest.mark.slow

ANSWER = {"engine": "x", "rows_in": 30, "results": 4, "seconds": 1.5, "epoch_seconds": [0.5, 1.0]}
GROW = "import time; block = bytearray(b'x') * (200 << 20); time.sleep(1.5)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_answer_is_the_last_line() -> None:
    result = run_subprocess(python(f"print('progress'); print({json.dumps(json.dumps(ANSWER))}); print()"))
    assert result.engine == "x" and result.finished and result.note == ""
    assert (result.rows_in, result.results, result.rows_per_s) == (30, 4, 20)
    assert result.epoch_seconds == (0.5, 1.0)


def test_result_survives_its_own_json() -> None:
    before = PeerResult("x", 10, 5, 2.0, (1.0, 1.0), note="why")
    after = run_subprocess(python(f"print({before.to_json()!r})"))
    assert (after.engine, after.rows_in, after.results, after.note) == ("x", 10, 5, "why")
    assert json.loads(before.to_json())["rows_per_s"] == 5


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('out of heap')", "ended with code 1: out of heap"),
        ("print('no answer')", "no JSON object"),
        ("pass", "no JSON object"),
        ("print('{}')", "lacks engine"),
    ],
)
def test_failures_are_results(code: str, said: str) -> None:
    result = run_subprocess(python(code), engine="x")
    assert result.engine == "x" and not result.finished
    assert said in result.note


def test_answer_of_a_process_that_failed_afterwards_is_not_finished() -> None:
    result = run_subprocess(python(f"print({json.dumps(json.dumps(ANSWER))}); raise SystemExit(3)"))
    assert result.rows_in == 30 and not result.finished


def test_limit_stops_the_whole_tree(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys, time, pathlib; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"pathlib.Path({str(pid_file)!r}).write_text(str(child.pid)); time.sleep(60)"
    )
    result = run_subprocess(python(code), limit_seconds=1.5, engine="x")
    assert not result.finished and result.note == "stopped after 1.5 s"
    child = int(pid_file.read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_process_stays_up_between_its_turns() -> None:
    code = (
        "import os; from spillway.lab.engines.process import serve; "
        "from spillway.lab.engines.result import PeerResult; turns = iter(range(9)); "
        "serve(lambda: PeerResult('x', os.getpid(), next(turns), 1.0))"
    )
    with EngineProcess(python(code), engine="mine") as process:
        results = [process.turn(60.0) for _ in range(3)]
        pid = results[0].rows_in
        until = time.monotonic() + 10.0  # it is held while others run, as soon as the signal is through
        while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert [one.results for one in results] == [0, 1, 2]
    assert {(one.engine, one.rows_in, one.finished) for one in results} == {("mine", pid, True)}
    assert not psutil.pid_exists(pid)


def test_a_benchmark_that_is_terminated_leaves_no_engine(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    engine = (
        "import os; from spillway.lab.engines.process import serve; "
        "from spillway.lab.engines.result import PeerResult; "
        "serve(lambda: PeerResult('x', os.getpid(), 1, 1.0))"
    )
    code = (
        "import pathlib, sys, time; from spillway.cli import main; "
        "from spillway.lab import bench; from spillway.lab.engines.process import EngineProcess\n"
        "def held(**_):\n"
        f"    with EngineProcess([sys.executable, '-c', {engine!r}]) as engine:\n"
        f"        pid = engine.turn(60.0).rows_in\n"
        f"        pathlib.Path({str(pid_file)!r}).write_text(str(pid))\n"
        "        time.sleep(60)\n"
        "bench.bench_join = held\n"
        "sys.argv = ['spillway', 'bench', 'join', '--json']\n"
        "main()"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True) as bench:
        until = time.monotonic() + 60.0
        while not pid_file.exists() or not pid_file.read_text():
            assert bench.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        bench.terminate()
        output, _ = bench.communicate(timeout=60.0)
        assert bench.returncode == 143
    assert json.loads(output.splitlines()[-1])["interrupted"] == "SIGTERM"
    assert not psutil.pid_exists(int(pid_file.read_text()))


def test_a_process_that_ends_between_turns_is_a_failure() -> None:
    process = EngineProcess(python(f"print({json.dumps(json.dumps(ANSWER))}, flush=True); exit('enough')"))
    assert process.turn(60.0).finished
    second = process.turn(60.0)
    assert not second.finished and second.note == "ended with code 1: enough"


def test_engines_take_turns_in_changing_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import sys; from spillway.lab.engines.process import serve; "
        "from spillway.lab.engines.result import PeerResult\n"
        "def run():\n"
        "    with open({log!r}, 'a') as log: log.write({name!r})\n"
        "    return PeerResult({name!r}, 1, 1, 1.0, finished={name!r} != 'c')\n"
        "serve(run)"
    )
    commands = {name: python(code.format(log=str(log), name=name)) for name in "abc"}
    results = in_turns(commands, 3, 60.0, lambda line: None)
    assert log.read_text() == "abcbaab"
    assert [(one.engine, len(one.all_seconds), one.finished) for one in results] == [
        ("a", 3, True), ("b", 3, True), ("c", 1, False)
    ]  # fmt: skip


def test_memory_of_children_counts() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {GROW!r}])"
    result = run_subprocess(python(code), engine="x")
    assert 200 << 20 < result.peak_rss_bytes < 400 << 20
    if read_pss(psutil.Process().pid) is not None:
        assert result.peak_pss_bytes is not None
        assert 190 << 20 < result.peak_pss_bytes <= result.peak_rss_bytes + (100 << 20)


def test_process_counts_from_its_second_sample() -> None:
    code = "block = bytearray(b'x') * (150 << 20); print('ready', flush=True); input()"
    with subprocess.Popen(python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        memory = ProcessMemory(psutil.Process().pid)
        memory.sample()
        before = memory.peak_rss_bytes
        memory.sample()
        child.communicate(b"\n")
    assert memory.peak_rss_bytes - before > 140 << 20


def test_duckdb_joins_the_files(tmp_path: Path) -> None:
    write_join_data(tmp_path / "data", rows=2_000, files=4)
    result = run_subprocess(duckdb_argv(tmp_path / "data", tmp_path / "out"))
    assert result.finished and result.engine == "duckdb"
    assert result.rows_in == 6_000
    assert 7_000 < result.results < 9_000  # 8 per key, 1000 keys
    assert len(result.epoch_seconds) == 1


def test_spark_command_carries_its_options() -> None:
    argv = spark_argv(Path("d"), Path("o"), "rocksdb", cores=3, limit_seconds=60, free_run=True)
    assert argv[2:] == [
        "spillway.lab.engines.spark_join", "d", "o", "--store", "rocksdb",
        "--cores", "3", "--shape", "join", "--limit-seconds", "60", "--free-run",
    ]  # fmt: skip


def test_too_few_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="bench join"):
        write_join_data(tmp_path, rows=1)
