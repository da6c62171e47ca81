"""The job file: what it means, and one line for each way to get it wrong."""

from pathlib import Path

import pytest

from spillway.errors import JobError
from spillway.job import read_job
from spillway.job.keywords import run_config
from spillway.job.run import RunConfig
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.model.byte_size import parse_bytes

JOB = """
[view]
sql = "SELECT a.id FROM a, b WHERE a.k = b.k"
[sources.a]
format = "parquet"
path = "data/a"
schema = "k long, id long"
options = { maxFilesPerTrigger = 1, recursiveFileLookup = true }
[sources.b]
format = "kafka"
[run]
processors = 3
groups = 64
memory = "64MB"
checkpoint = "state"
[sink]
format = "parquet"
path = "s3://bucket/out"
[spark]
"spark.master" = "local[2,4]"
"spark.ui.enabled" = false
"""


def write(directory: Path, text: str) -> Path:
    file = directory / "job.toml"
    file.write_text(text)
    return file


def test_a_whole_job(tmp_path: Path) -> None:
    job = read_job(write(tmp_path, JOB))
    assert job.view.text == "SELECT a.id FROM a, b WHERE a.k = b.k"
    options = {"maxFilesPerTrigger": "1", "recursiveFileLookup": "true"}
    assert job.sources == {
        "a": SourceSpec("a", "parquet", str(tmp_path / "data/a"), "k long, id long", options),
        "b": SourceSpec("b", "kafka"),
    }
    assert job.run == RunConfig(str(tmp_path / "state"), processors=3, groups=64, memory_bytes=64 << 20)
    assert job.sink == SinkSpec("parquet", "s3://bucket/out")
    assert job.spark == {"spark.master": "local[2,4]", "spark.ui.enabled": "false"}


def test_how_joins_are_run(tmp_path: Path) -> None:
    text = JOB.replace("[sources.a]", 'tree = [["a", "b"], "c"]\njoin = "replicate"\n[sources.a]')
    job = read_job(write(tmp_path, text.replace("groups = 64", "groups = 64\nlineage_one_in = 16")))
    assert (job.view.tree, job.view.join_kind) == ((("a", "b"), "c"), "replicate")
    assert job.run.lineage_one_in == 16


def test_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "view.sql").write_text("SELECT 1")
    job = read_job(
        write(tmp_path, '[view]\nfile = "view.sql"\n[sources]\n[run]\ncheckpoint = "/abs"\nuntil = "forever"')
    )
    assert job.view.text == "SELECT 1"
    assert job.run == RunConfig("/abs", until="forever")
    assert job.run.memory_bytes is None
    assert (job.sink, job.spark) == (SinkSpec("delta"), {})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[view]",
            '[view]\njoin = "broadcast"',
            r'\[view\] join = "broadcast": must be one of tree, ',
        ),
        (
            "groups = 64",
            "lineage_one_in = 0",
            r"lineage_one_in = 0: must be a whole number of rows, at least 1",
        ),
        ("[view]", "[veiw]", r"unknown table \[veiw\] in the job file; did you mean view\?"),
        ("processors = 3", "procesors = 3", r"unknown key procesors in \[run\]; did you mean processors\?"),
        ("schema =", "shape =", r"unknown key shape in \[sources\.a\]; "),
        ('format = "kafka"', 'topic = "x"', r"unknown key topic in \[sources\.b\]; known keys: format, path"),
        ('format = "kafka"', 'path = "x"', r"\[sources\.b\] has no format; for example"),
        ('format = "kafka"', "format = 3", r"\[sources\.b\] format = 3: must be a non-empty string"),
        ('format = "kafka"', 'format = " "', r"must be a non-empty string"),
        ("options = {", "options = 1 # {", r"\[sources\.a\] options = 1: must be a table: options = "),
        ("processors = 3", "processors = 0", r"\[run\] processors = 0: must be a whole number, at least 1"),
        ("processors = 3", 'processors = "3"', r'\[run\] processors = "3": must be a whole number'),
        ("processors = 3", "processors = true", r"\[run\] processors = true: must be a whole number"),
        ("processors = 3", "processors = 65", r"processors = 65 is more than groups = 64: .*; raise groups"),
        (
            "groups = 64",
            "groups = 65537",
            r"groups = 65537: must be a whole number, .* at most 65536",
        ),
        ('"64MB"', '"64 apples"', r'\[run\] memory = "64 apples": not a size; write it like "64MB"'),
        ('checkpoint = "state"', "", r'\[run\] has no checkpoint; for example checkpoint = "state"'),
        ('checkpoint = "state"', 'checkpoint = "x"\nuntil = "monday"', r'until = "monday": must be one of'),
        ('sql = "SELECT', 'file = "x.sql"\nsql = "SELECT', r"\[view\] needs either sql = .* or file = "),
        ("sql = ", "file = ", r"\[view\] file .* cannot be read: "),
        (
            "[sink]",
            "[run.emulate]\nspeeds = [1.0, 0.5]\n[sink]",
            r"\[run\] emulate.speeds has 2 values for 3 processors; give one for each",
        ),
        ("groups = 64", 'load_signal = "cpu"', r'load_signal = "cpu": must be one of wall, processor'),
        (
            "groups = 64",
            "inactive_epochs = -1",
            r"-1: must be a whole number of epochs, at least 0",
        ),
        ("groups = 64", "restart_epochs = 1.5", r"\[run\] restart_epochs = 1.5: must be a whole number"),
        (
            "groups = 64",
            "history_weight = 2",
            r"= 2: must be a number, at least 0 and at most 1",
        ),
        ("groups = 64", "room_share = -0.1", r"\[run\] room_share = -0.1: must be a number, at least 0 and"),
        ("groups = 64", "state_share = 1", r"\[run\] state_share = 1: must be a number, above 0 and below 1"),
        ("[sink]", "[[sink]]", r"sink must be a table: \[sink\]"),
    ],
)
def test_one_line_for_each_mistake(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in JOB
    file = write(tmp_path, JOB.replace(old, new, 1))
    with pytest.raises(JobError, match=message) as caught:
        read_job(file)
    assert str(caught.value).startswith(f"job file {file}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("table", ["view", "sources", "run"])
def test_a_missing_table(tmp_path: Path, table: str) -> None:
    tables = {"view": 'sql = "x"', "sources": "", "run": 'checkpoint = "x"'}
    text = "\n".join(f"[{name}]\n{body}" for name, body in tables.items() if name != table)
    with pytest.raises(JobError, match=rf"there is no \[{table}\] table"):
        read_job(write(tmp_path, text))


def test_files_that_are_no_job(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"job file .*nowhere\.toml cannot be read: No such file"):
        read_job(tmp_path / "nowhere.toml")
    with pytest.raises(JobError, match=r"job file .* is not valid TOML: .*"):
        read_job(write(tmp_path, "view = "))
    (tmp_path / "job.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(JobError, match="is not valid TOML"):
        read_job(tmp_path / "job.toml")
    with pytest.raises(JobError, match="cannot be read: Is a directory"):
        read_job(tmp_path)


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64 << 20), ("1.5 gb", 3 << 29), ("10k", 10_240), (4096, 4096), ("7B", 7), ("2TB", 2 << 40)],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_bytes(text, "memory") == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1XB", "0", "0.0001B", True])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(JobError, match="memory"):
        parse_bytes(text, "memory")


def test_settings_given_in_python_are_checked_like_keys() -> None:
    with pytest.raises(JobError, match=r"unknown key procesors in run\(\.\.\.\); did you mean processors\?"):
        run_config("state", {"procesors": 2})
    assert run_config("state", {"processors": 3}) == RunConfig("state", processors=3)
