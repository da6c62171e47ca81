"""Programs of foreign engines: they start without Spillway, and get the same rows as text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spillway.lab.engines.data import write_join_data
from spillway.lab.engines.foreign import FOREIGN, text_files, write_text_streams
from spillway.lab.engines.foreign.flink_join import settings, table_sql
from spillway.lab.engines.process import run_subprocess
from spillway.lab.engines.result_sum import output_sum, parquet_sum

PROGRAMS = Path(text_files.__file__).parent


@pytest.mark.parametrize("engine", FOREIGN.values(), ids=lambda engine: engine.name)
def test_program_needs_the_standard_library_alone(engine: object) -> None:
    script = PROGRAMS / engine.program  # type: ignore[attr-defined]
    code = (
        f"import runpy, sys; sys.argv = ['x', '--help']; runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--cores" in done.stdout


def test_command(tmp_path: Path) -> None:
    argv = FOREIGN["flink"].argv(Path("py"), {"shape": "join"}, cores=3, java_home="/java")
    assert argv[:2] == ["py", "-I"] and argv[2].endswith("flink_join.py")
    assert json.loads(argv[3]) == {"shape": "join"}
    assert argv[4:] == ["--cores", "3", "--java-home", "/java", "--checkpoint-ms", "1000"]
    assert "--java-home" not in FOREIGN["pathway"].argv(Path("py"), {}, cores=2, java_home=None)


def test_flink_takes_checkpoints_only_if_asked() -> None:
    assert settings(2, None)["table.optimizer.multi-join.enabled"] == "true"
    assert settings(2, None, multi_join=False)["table.optimizer.multi-join.enabled"] == "false"
    assert not any("checkpoint" in key for key in settings(2, None))
    assert settings(2, 500)["execution.checkpointing.interval"] == "500 ms"
    assert "'path' = 'file:///d/a'" in table_sql("a", "k bigint", Path("/d/a"))


def test_text_holds_the_same_rows(tmp_path: Path) -> None:
    write_join_data(tmp_path / "data", rows=400, files=4)
    write_text_streams(tmp_path / "data", tmp_path / "text", ("a", "b"), header=False)
    assert len(list((tmp_path / "text" / "a").iterdir())) == 4
    found = output_sum(tmp_path / "text" / "a", ("k", "id", "p"))
    assert found == parquet_sum(tmp_path / "data" / "a") and found.rows == 400
    write_text_streams(tmp_path / "data", tmp_path / "named", ("a",), header=True)
    first = sorted((tmp_path / "named" / "a").iterdir())[0].read_text().splitlines()[0]
    assert first.replace('"', "") == "k,row_id,p"


def test_output_that_is_text_is_counted_and_summed(tmp_path: Path) -> None:
    results = tmp_path / "results"
    (results / ".staging").mkdir(parents=True)
    (results / "part-1").write_text("1,x\n2,y\n")
    (results / "_SUCCESS").write_text("")
    (results / ".staging" / "part-2").write_text("3,z\n")
    answer = {
        "engine": "mill", "rows_in": 9, "results": 0, "seconds": 1.0, "epoch_seconds": [1.0],
        "output": str(results), "output_columns": ["n", "t"], "note": "text",
    }  # fmt: skip
    result = run_subprocess([sys.executable, "-c", f"print({json.dumps(json.dumps(answer))})"])
    assert result.finished and (result.results, result.note) == (2, "text")
    assert result.checksum == output_sum(results, ("n", "t")).checksum != "0"
    assert result.command_seconds > 0


def test_retracted_results_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text('"n","time","diff"\n"1","5","1"\n"2","5","1"\n')
    plain = tmp_path / "plain.csv"
    plain.write_text("1\n2\n")
    assert output_sum(file, ("n", "time", "diff")) == output_sum(plain, ("n",))
    file.write_text("n,time,diff\n1,5,1\n1,6,-1\n")
    answer = {
        "engine": "mill", "rows_in": 9, "results": 0, "seconds": 1.0, "epoch_seconds": [1.0],
        "output": str(file), "output_columns": ["n", "time", "diff"],
    }  # fmt: skip
    result = run_subprocess([sys.executable, "-c", f"print({json.dumps(json.dumps(answer))})"], engine="mill")
    assert not result.finished and "1 retracted" in result.note
