"""What a user can get wrong: one line says what, where and what to do; nothing is lost or half-written."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from conftest import Lab

Command = Callable[..., tuple[int, str, str]]
Tree = Callable[..., Mapping[str, bytes]]

SQL = "SELECT a.id AS p, b.id AS q, c.id AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
SCHEMA = "k long, id long, s string"


def rows(count: int, first: int = 0) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([n % 3 for n in range(count)], pa.int64()),
            "id": pa.array(range(first, first + count), pa.int64()),
            "s": pa.array(["x"] * count),
        }
    )


def fill(lab: "Lab", epochs: int = 2) -> None:
    for name in "abc":
        lab.stream(name, *(rows(6, 6 * epoch) for epoch in range(epochs)))


def write_job(lab: "Lab", **changes: Any) -> Path:
    """A job over the streams; `changes` replace its parts."""
    parts = {"sql": SQL, "schema": SCHEMA, "path": "data/c", "format": "parquet", "run": "", "sink": "delta",
             "out": "out", "checkpoint": "state", "options": ""} | changes  # fmt: skip
    sources = "".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "data/{name}"\nschema = "{SCHEMA}"\n'
        'options = { maxFilesPerTrigger = "1" }\n'
        for name in "ab"
    )
    file = lab.directory / "job.toml"
    file.write_text(
        f'[view]\nsql = "{parts["sql"]}"\n{sources}'
        f'[sources.c]\nformat = "{parts["format"]}"\npath = "{parts["path"]}"\nschema = "{parts["schema"]}"\n'
        'options = { maxFilesPerTrigger = "1" }\n'
        f'[run]\ncheckpoint = "{parts["checkpoint"]}"\ntier = "tier"\n{parts["run"]}\n'
        f'[sink]\nformat = "{parts["sink"]}"\npath = "{parts["out"]}"\n{parts["options"]}\n'
    )
    return file


def refused(result: tuple[int, str, str], pattern: str) -> None:
    """The one line of a refusal: exit code not zero, nothing on standard output, no stack trace."""
    code, output, error = result
    assert code != 0
    assert output == ""
    lines = [line for line in error.splitlines() if not line.startswith("epoch ")]  # progress before it
    assert len(lines) == 1, error
    assert lines[0].startswith("error: ")
    assert re.search(pattern, lines[0]), error


REFUSED_BEFORE_ANYTHING: dict[str, tuple[dict[str, str], str]] = {
    "unknown column": ({"sql": SQL.replace("a.id", "a.idd")}, r"unknown column a\.idd.*id"),
    "unknown table": ({"sql": SQL.replace("FROM a", "FROM aa")}, r"unknown (table|source) aa"),
    "ambiguous column": ({"sql": SQL.replace("a.id AS p", "id AS p")}, r"ambiguous column id.*a\.id.*b\.id"),
    "no equi-join": (
        {"sql": "SELECT a.id AS p FROM a, b, c WHERE a.k < b.k AND b.k < c.k"},
        r"equi-join|equality",
    ),
    "unsupported clause": ({"sql": SQL + " ORDER BY 1"}, r"ORDER BY"),
    "key type mismatch": (
        {"sql": SQL.replace("b.k = c.k", "b.k = c.s")},
        r"key type mismatch: .*bigint.*c\.s is string; cast",
    ),
    "missing source path": ({"path": "data/nowhere"}, r"\[sources\.c\] path .*nowhere does not exist; "),
    "schema with another type": (
        {"schema": "k long, id string, s string"},
        r"\[sources\.c\] schema has id string, but the files in .*data/c have id bigint; correct",
    ),
    "schema with a column too many": (
        {"schema": SCHEMA + ", extra int"},
        r"\[sources\.c\] schema has column extra, but the files .* do not; they have k, id, s",
    ),
    "schema that is no schema": ({"schema": "k lnog"}, r"\[sources\.c\] cannot be opened: .*LNOG|lnog"),
    "unknown format": ({"format": "parkay"}, r"\[sources\.c\] cannot be opened: .*parkay"),
    "bad workload": ({"format": "workload"}, r"\[sources\.c\] .*workload"),
    "unwritable checkpoint": (
        {"checkpoint": "data/a/0000.parquet/state"},
        r"cannot write to .*state: .*; give",
    ),
    "unknown sink": ({"sink": "postgres"}, r'\[sink\] format = "postgres": must be one of delta, '),
    "unknown sink option": ({"options": 'options = { mode = "x" }'}, r"no option 'mode'; its options"),
    "name that Delta does not allow": ({"sql": SQL.replace("AS p", "AS `p q`")}, r"p q"),
    "sink below a file": ({"out": "data/a/0000.parquet/out"}, r"cannot write to .*out: .*; give"),
    "sink column twice": (
        {"sql": SQL.replace("AS q", "AS P")},
        r"two result columns are called P: a\.id and b\.id; alias",
    ),
    "too little memory": ({"run": 'memory = "2MB"'}, r"memory = 2097152 bytes .*give at least .4MB"),
    "no memory": ({"run": 'memory = "much"'}, r'job file .*job\.toml: \[run\] memory = "much": not a size'),
}


@pytest.mark.parametrize("name", REFUSED_BEFORE_ANYTHING)
def test_refused_before_anything_is_written(lab: "Lab", command: Command, name: str) -> None:
    changes, pattern = REFUSED_BEFORE_ANYTHING[name]
    fill(lab, 1)
    refused(command("run", write_job(lab, **changes)), pattern)
    assert not lab.checkpoint.exists()
    assert not lab.out.exists()


def test_a_checkpoint_that_spark_cannot_reach_is_refused_before_anything_is_written(
    lab: "Lab", command: Command, s3_server: Callable[..., Any]
) -> None:
    fill(lab, 1)
    server = s3_server()
    job = write_job(lab, checkpoint=server.uri("bucket/state"))
    # With an option that only Structured Streaming knows; a file log needs no connector.
    job.write_text(job.read_text().replace("{ maxFilesPer", '{ maxCachedFiles = "9", maxFilesPer'))
    refused(
        command("run", job),
        r"cannot keep its streaming log in s3://bucket/state/spark: No FileSystem for scheme .*hadoop-aws",
    )
    assert server.objects == {}
    assert not lab.out.exists()
    job = write_job(lab, checkpoint=server.uri("bucket/state"))
    assert command("run", job)[0] == 0
    assert lab.results() == lab.duckdb(SQL)
    late = lab.directory / "data" / "a" / "later.parquet"
    pq.write_table(pq.read_table(next((lab.directory / "data" / "a").glob("*.parquet"))), late)
    assert command("run", job)[0] == 0  # state, manifest and file log are read back
    assert lab.results() == lab.duckdb(SQL) + lab.duckdb(SQL)


def test_a_refusal_with_json_is_one_object_on_standard_output(lab: "Lab", command: Command) -> None:
    fill(lab, 1)
    code, output, error = command("run", write_job(lab, path="data/nowhere"), "--json")
    assert code != 0
    assert len(output.splitlines()) == 1
    told = json.loads(output)
    assert told["kind"] == "SourceError"
    assert error == f"error: {told['error']}\n"


def test_files_that_change_their_schema_later_are_named(lab: "Lab", command: Command, tree: Tree) -> None:
    fill(lab, 1)
    job = write_job(lab)
    assert command("run", job)[0] == 0
    results = lab.results()
    odd = lab.directory / "data" / "c" / "odd.parquet"
    pq.write_table(pa.table({"k": ["not a number"], "id": ["x"], "s": ["y"]}), odd)
    before = tree(lab.checkpoint / "manifest"), tree(lab.out)
    refused(command("run", job), r"odd\.parquet")
    assert (tree(lab.checkpoint / "manifest"), tree(lab.out)) == before
    assert lab.results() == results


CHANGES: dict[str, tuple[dict[str, str], str]] = {
    "another view": (
        {"sql": SQL.replace("a.id AS p", "a.k AS p")},
        r"another query: the view was SELECT.*now",
    ),
    "another filter": ({"sql": SQL + " AND a.id > 3"}, r"another query: the view was"),
    "other groups": ({"run": "groups = 17"}, r"another query: groups was 256, now it is 17; undo"),
}


def test_a_restart_with_a_change_leaves_all_as_it_was(lab: "Lab", command: Command, tree: Tree) -> None:
    fill(lab, 1)
    assert command("run", write_job(lab))[0] == 0
    fill(lab, 1)
    before = tree(lab.checkpoint), tree(lab.out)
    for name, (changes, pattern) in CHANGES.items():
        refused(command("run", write_job(lab, **changes)), rf"checkpoint .*state belongs to {pattern}")
        assert (tree(lab.checkpoint), tree(lab.out)) == before, name
    assert command("run", write_job(lab))[0] == 0
    assert lab.results() == lab.duckdb(SQL)


def test_a_restart_with_other_column_types_is_refused(lab: "Lab", command: Command, tree: Tree) -> None:
    fill(lab, 1)
    assert command("run", write_job(lab))[0] == 0
    for name in "abc":
        file = lab.directory / "data" / name / "0000.parquet"
        pq.write_table(rows(6).set_column(1, "id", pa.array(range(6), pa.int32())), file)
    job = write_job(lab, schema=SCHEMA.replace("id long", "id int"))
    job.write_text(job.read_text().replace("id long", "id int"))
    before = tree(lab.checkpoint), tree(lab.out)
    refused(command("run", job), r"belongs to another query: the schema was .*bigint.*, now it is .*int")
    assert (tree(lab.checkpoint), tree(lab.out)) == before


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_a_sink_with_another_querys_output(lab: "Lab", command: Command, tree: Tree, sink: str) -> None:
    fill(lab, 1)
    assert command("run", write_job(lab, sink=sink))[0] == 0
    before = tree(lab.out)
    refused(
        command("run", write_job(lab, sink=sink, checkpoint="state2")), r"out .*another query.*; give another"
    )
    assert tree(lab.out) == before
    assert command("run", write_job(lab, sink=sink, checkpoint="state2", out="out2"))[0] == 0


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_a_sink_directory_with_foreign_files(lab: "Lab", command: Command, tree: Tree, sink: str) -> None:
    fill(lab, 1)
    lab.out.mkdir()
    (lab.out / "precious.txt").write_text("mine")
    refused(command("run", write_job(lab, sink=sink)), r"out has files .*; use a new or empty directory")
    assert tree(lab.out) == {"precious.txt": b"mine"}
    assert not lab.checkpoint.exists()


def test_a_checkpoint_in_use_by_another_process(lab: "Lab", command: Command, tree: Tree) -> None:
    fill(lab, 1)
    assert command("run", write_job(lab))[0] == 0
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, os, sys\n"
            "lock = os.open(sys.argv[1], os.O_RDWR)\n"
            "fcntl.flock(lock, fcntl.LOCK_EX)\n"
            "os.ftruncate(lock, 0); os.write(lock, str(os.getpid()).encode())\n"
            "print('held', flush=True); sys.stdin.read()",
            str(lab.checkpoint / "lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        before = tree(lab.checkpoint), tree(lab.out)
        refused(command("run", write_job(lab)), rf"state is in use by process {holder.pid}; stop it")
        assert (tree(lab.checkpoint), tree(lab.out)) == before
    finally:
        holder.communicate()
    assert command("run", write_job(lab))[0] == 0


def only(directory: Path, pattern: str) -> Path:
    """The last of the files of that kind."""
    return sorted(directory.glob(pattern))[-1]


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0x40]) + content[middle + 1 :]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def of_version(content: bytes) -> bytes:
    return re.sub(rb'^{"spillway": \d+', b'{"spillway": 99', content)


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes] | None, str]] = {
    "corrupted run": ("runs/*.run", flip, r"state file .*\.run is corrupted: .*checksum.*; restore"),
    "truncated run": ("runs/*.run", cut, r"state file .*\.run is corrupted: .*bytes.*; restore"),
    "lost run": ("runs/*.run", None, r"cannot read .*\.run: it does not exist"),
    "corrupted manifest": ("manifest/*.json", flip, r"manifest/\d+\.json is corrupted: checksum.*; restore"),
    "truncated manifest": ("manifest/*.json", cut, r"manifest/\d+\.json is corrupted: .*; restore"),
    "empty manifest": (
        "manifest/*.json",
        lambda _: b"",
        r"manifest/\d+\.json is corrupted: no header; restore",
    ),
    "manifest of another version": (
        "manifest/*.json",
        of_version,
        r"manifest/\d+\.json has format version 99",
    ),
    "identity of another version": ("query.json", of_version, r"query\.json has format version 99.*; use"),
    "corrupted identity": ("query.json", flip, r"query\.json is corrupted: .*; restore"),
}


@pytest.mark.parametrize("pattern", sorted({pattern for pattern, _, _ in DAMAGES.values()}))
def test_a_damaged_file_is_named_and_once_restored_nothing_is_lost(
    lab: "Lab", command: Command, tree: Tree, pattern: str
) -> None:
    """One damage after the other to the same file, restored in between; the last start goes on."""
    fill(lab, 2)
    assert command("run", write_job(lab))[0] == 0
    fill(lab, 1)
    victim = only(lab.checkpoint, pattern)
    whole = victim.read_bytes()
    for name, (damaged, damage, message) in DAMAGES.items():
        if damaged != pattern:
            continue
        if damage is None:
            victim.unlink()
        else:
            victim.write_bytes(damage(whole))
            assert victim.read_bytes() != whole
        before = tree(lab.checkpoint / "manifest"), tree(lab.checkpoint / "runs"), tree(lab.out)
        refused(command("run", write_job(lab)), message)
        manifest, runs, out = tree(lab.checkpoint / "manifest"), tree(lab.checkpoint / "runs"), tree(lab.out)
        assert (manifest, out) == (before[0], before[2]), name
        assert runs.items() >= before[1].items(), name
        victim.write_bytes(whole)
    assert command("run", write_job(lab))[0] == 0
    assert lab.results() == lab.duckdb(SQL)


def test_a_damaged_pending_file_is_named(lab: "Lab", command: Command) -> None:
    fill(lab, 1)
    lab.run_epochs(SQL, 1, epoch_rows=3, processors=1)
    pending = only(lab.checkpoint, "pending/*.pending")
    whole = pending.read_bytes()
    pending.write_bytes(flip(whole))
    job = write_job(lab, run="epoch_rows = 3")
    refused(command("run", job), r"state file .*\.pending is corrupted: .*checksum.*; restore")
    pending.write_bytes(whole)
    assert command("run", job)[0] == 0
    assert lab.results() == lab.duckdb(SQL)


def test_a_manifest_that_lacks_an_epoch_is_refused(lab: "Lab", command: Command, tree: Tree) -> None:
    """A hole is named; behind its sink, epochs would get used numbers, and their results would be dropped."""
    fill(lab, 3)
    assert command("run", write_job(lab))[0] == 0
    fill(lab, 1)
    before = tree(lab.out)
    for epoch, message in (
        (1, r"the manifest has epoch 2 after epoch 0"),
        (2, r"the sink has epoch 2, .*manifest ends with epoch 1.*; restore"),
    ):
        victim = lab.checkpoint / "manifest" / f"{epoch:012d}.json"
        whole = victim.read_bytes()
        victim.unlink()
        refused(command("run", write_job(lab)), message)
        assert tree(lab.out) == before
        victim.write_bytes(whole)
    assert command("run", write_job(lab))[0] == 0
    assert lab.results() == lab.duckdb(SQL)


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_a_sink_that_was_deleted_or_changed_is_refused(
    lab: "Lab", command: Command, tree: Tree, sink: str
) -> None:
    fill(lab, 2)
    assert command("run", write_job(lab, sink=sink))[0] == 0
    before = tree(lab.out)
    missing = (
        r"epochs whose results are not in the sink .*: the sink changed, or was deleted; .*new checkpoint"
    )
    refused(command("run", write_job(lab, sink=sink, out="out2")), missing)
    assert not (lab.directory / "out2").exists()
    refused(
        command("run", write_job(lab, sink="delta" if sink == "parquet" else "parquet")), "format of its sink"
    )
    kept = lab.directory / "kept"
    lab.out.rename(kept)
    refused(command("run", write_job(lab, sink=sink)), missing)
    assert not lab.out.exists()
    kept.rename(lab.out)
    assert command("run", write_job(lab, sink=sink))[0] == 0
    assert tree(lab.out) == before


def test_cleanup_says_that_input_was_not_read(lab: "Lab", command: Command) -> None:
    fill(lab, 1)
    job = write_job(lab)
    code, output, error = command("cleanup", job, "--json")
    assert code == 0, error
    assert (json.loads(output)["complete"], json.loads(output)["missing"]) == (
        False,
        ["input that was not read"],
    )
    assert "missing: input that was not read" in error
    assert json.loads(command("run", job, "--json")[1])["complete"]
    assert json.loads(command("cleanup", job, "--json")[1])["missing"] == []
