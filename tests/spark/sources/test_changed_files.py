"""Files that come later and do not fit: they are named, and none of their rows is lost without a word."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from spillway.errors import SourceError

if TYPE_CHECKING:
    from conftest import Lab

Command = Callable[..., tuple[int, str, str]]

SQL = "SELECT a.id AS p, b.id AS q, b.s AS s FROM a, b WHERE a.k = b.k"
SCHEMA = "k long, id long, s string, unused int"


def rows(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "k": pa.array([n % 3 for n in numbers], pa.int64()),
            "id": pa.array(numbers, pa.int64()),
            "s": pa.array([f"s{n}" for n in numbers]),
            "unused": pa.array([0] * count, pa.int32()),
        }
    )


def write(lab: "Lab", name: str, number: int, table: pa.Table, kind: str = "parquet") -> Path:
    directory = lab.directory / "data" / name
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{number:04d}.{kind}"
    (pq if kind == "parquet" else orc).write_table(table, path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return path


def write_job(lab: "Lab", schema: str | None = SCHEMA, kind: str = "parquet", options: str = "") -> Path:
    declared = f'schema = "{schema}"\n' if schema else ""
    sources = "".join(
        f'[sources.{name}]\nformat = "{kind}"\npath = "data/{name}"\n{declared}'
        f'options = {{ maxFilesPerTrigger = "1"{options} }}\n'
        for name in "ab"
    )
    file = lab.directory / "job.toml"
    file.write_text(
        f'[view]\nsql = "{SQL}"\n{sources}[run]\ncheckpoint = "state"\ntier = "tier"\ngroups = 8\n'
        '[sink]\nformat = "delta"\npath = "out"\n'
    )
    return file


def expected(a: pa.Table, b: pa.Table) -> Counter[Any]:
    left, right = a.to_pylist(), b.to_pylist()
    return Counter(
        (x["id"], y["id"], y.get("s"))
        for x in left
        for y in right
        if x["k"] is not None and x["k"] == y.get("k")
    )


def changed(column: str, values: pa.Array | None) -> pa.Table:
    table = rows(4, 6)
    if values is None:
        return table.drop_columns([column])
    return table.set_column(table.schema.get_field_index(column), column, values)


REFUSED: dict[str, tuple[pa.Table, str | None, str]] = {
    "no key": (changed("k", None), SCHEMA, r"has no column k, which the view reads; it has id, s, unused"),
    "no column that is not null": (
        changed("s", None),
        SCHEMA.replace("s string", "s string NOT NULL"),
        "has no column s",
    ),
    "no column, and no schema": (changed("s", None), None, r"has no column s, which the view reads"),
    "a narrower key": (
        changed("k", pa.array([0, 1, 2, 0], pa.int32())),
        SCHEMA,
        "has k int, expected bigint",
    ),
    "a key as text": (changed("k", pa.array(list("0120"))), SCHEMA, "has k string, expected bigint"),
    "numbers for text": (changed("s", pa.array([1, 2, 3, 4])), SCHEMA, "has s bigint, expected string"),
}


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_later_file_that_does_not_fit_is_named(lab: "Lab", command: Command, case: str, kind: str) -> None:
    table, schema, message = REFUSED[case]
    write(lab, "a", 0, rows(6), kind)
    write(lab, "b", 0, rows(6), kind)
    job = write_job(lab, schema, kind)
    assert command("run", job)[0] == 0
    before = lab.results()
    assert before == expected(rows(6), rows(6))
    odd = write(lab, "b", 1, table, kind)
    for _ in range(2):  # a restart says the same
        code, output, error = command("run", job, "--json")
        assert (code, json.loads(output)["kind"]) == (1, "SourceError"), error
        assert re.search(rf"\[sources\.b\] file .*{odd.name} {message}.*; write the file again", error), error
        assert lab.results() == before
    write(lab, "b", 1, rows(4, 6), kind)
    assert command("run", job)[0] == 0
    assert lab.results() == expected(rows(6), rows(10))


TIMED_SCHEMA = "k long, ts timestamp, id long, n long"
RANGE = "PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW"
TIMED: dict[str, tuple[str, str]] = {
    "event time of statistics": (f"SELECT id, count(*) OVER ({RANGE}) AS c FROM a", "ts"),
    "order of statistics": (
        "SELECT id, count(*) OVER (PARTITION BY k ORDER BY ts, n "
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS c FROM a",
        "n",
    ),
    "event time of a window": (
        "SELECT a.id AS p, b.id AS q FROM a [RANGE 10 MINUTES] JOIN b [RANGE 2 MINUTES] ON a.k = b.k",
        "ts",
    ),
    "event time of a window in a tree": (
        "SELECT a.id AS p, b.id AS q FROM a [RANGE 10 MINUTES] JOIN b [RANGE 2 MINUTES] ON a.k = b.k "
        "JOIN b c ON a.n = c.n",
        "ts",
    ),
}


def timed_rows(count: int, first: int = 0, missing: int = 0) -> pa.Table:
    """Rows a second apart; the last of them have no event time."""
    times = [n * 1_000_000 if n < first + count - missing else None for n in range(first, first + count)]
    table = (
        rows(count, first).select(["k", "id"]).append_column("ts", pa.array(times, pa.timestamp("us", "UTC")))
    )
    return table.append_column("n", table["id"])


def timed_job(lab: "Lab", sql: str) -> Path:
    sources = "".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "data/{name}"\nschema = "{TIMED_SCHEMA}"\n'
        'event_time = "ts"\nlateness = "2 hours"\noptions = { maxFilesPerTrigger = "1" }\n'
        for name in "ab"
    )
    file = lab.directory / "job.toml"
    file.write_text(
        f'[view]\nsql = "{sql}"\n{sources}[run]\ncheckpoint = "state"\ntier = "tier"\ngroups = 8\n'
        '[sink]\nformat = "delta"\npath = "out"\n'
    )
    return file


@pytest.mark.parametrize("case", TIMED)
def test_a_later_file_without_a_column_of_time_is_named(lab: "Lab", command: Command, case: str) -> None:
    """Its rows would have no place in time, and would give no results."""
    sql, column = TIMED[case]
    for name in "ab":
        write(lab, name, 0, timed_rows(6))
    names = [f"{name}_" if name == column else name for name in timed_rows(1).column_names]
    odd = write(lab, "a", 1, timed_rows(6, 6).rename_columns(names))
    code, output, error = command("run", timed_job(lab, sql), "--json")
    assert (code, json.loads(output)["kind"]) == (1, "SourceError"), error
    assert re.search(rf"\[sources\.a\] file .*{odd.name} has no column {column}, which", error), error
    write(lab, "a", 1, timed_rows(6, 6))
    code, output, error = command("run", timed_job(lab, sql), "--json")
    assert code == 0, error
    assert json.loads(output)["null_time_rows"] == 0


@pytest.mark.parametrize("case", ["event time of statistics", "event time of a window in a tree"])
def test_rows_without_an_event_time_are_counted(lab: "Lab", command: Command, case: str) -> None:
    for name in "ab":
        write(lab, name, 0, timed_rows(6, missing=2))
    code, output, error = command("run", timed_job(lab, TIMED[case][0]), "--json")
    assert code == 0, error
    count = 2 if case == "event time of statistics" else 6  # b is an input twice
    assert json.loads(output)["null_time_rows"] == count
    assert f"null_time_rows: {count} (they have no event time" in error
    journal = [json.loads(line) for line in (lab.checkpoint / "journal.jsonl").read_text().splitlines()]
    assert sum(entry["null_time_rows"] for entry in journal) == count
    assert sum(lab.results().values()) == (4 if count == 2 else 6)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_what_may_be_missing(lab: "Lab", command: Command, kind: str) -> None:
    """With a schema, a nullable column that is no key; and any column that the view does not read."""
    write(lab, "a", 0, rows(6).drop_columns(["s"]), kind)
    write(lab, "a", 1, rows(4, 6).drop_columns(["unused"]), kind)
    first, second = rows(6), rows(4, 6).drop_columns(["s"])
    write(lab, "b", 0, first, kind)
    write(lab, "b", 1, second, kind)
    write(lab, "b", 2, rows(2, 10).drop_columns(["unused"]), kind)
    job = write_job(lab, kind=kind)
    text = job.read_text()
    job.write_text(text.replace(SCHEMA, "k long, id long", 1))
    code, _, error = command("run", job)
    assert code == 0, error
    assert lab.results() == expected(
        rows(10), pa.concat_tables([first, second, rows(2, 10)], promote_options="default")
    )


def test_frames_are_checked_too(lab: "Lab") -> None:
    """Of a DataFrame of the user's, also where its columns are renamed."""
    lab.stream("a", rows(6))
    lab.stream("b", rows(6))
    renamed = {"a": lab.source("a"), "b": lab.source("b").selectExpr("k AS k", "id", "concat(s, '') AS s")}
    assert lab.run(SQL, sources=renamed)["complete"]
    odd = write(lab, "b", 1, changed("k", None))
    again = {"a": lab.source("a"), "b": renamed["b"]}
    with pytest.raises(SourceError, match=rf"\[sources.b\] file .*{odd.name} has no column k"):
        lab.run(SQL, sources=again)
    assert lab.results() == expected(rows(6), rows(6))


@pytest.mark.parametrize("step", [9, 10])
def test_files_are_found_where_spark_has_compacted_its_log(lab: "Lab", step: int) -> None:
    """Of every ten steps Spark writes one file; all streams are planned one file at a time."""
    lab.stream("a", rows(2))
    lab.stream("b", *(rows(2, 2 * number) for number in range(step)))
    odd = write(lab, "b", step, changed("k", None))
    with pytest.raises(SourceError, match=f"{odd.name} has no column k"):
        lab.run(SQL, processors=1)
    assert lab.results() == lab.duckdb(SQL)


def test_partition_columns_are_in_the_path(lab: "Lab", command: Command) -> None:
    for name in "ab":
        for part in range(2):
            directory = lab.directory / "data" / name / f"k={part}"
            directory.mkdir(parents=True)
            pq.write_table(rows(3, 3 * part).drop_columns(["k"]), directory / "0.parquet")
    job = write_job(lab, SCHEMA.replace("k long", "k int"))
    code, _, error = command("run", job)
    assert code == 0, error
    assert sum(lab.results().values()) == 18
    assert lab.results() == Counter(
        (p, q, f"s{q}")
        for part in range(2)
        for p in range(3 * part, 3 * part + 3)
        for q in range(3 * part, 3 * part + 3)
    )


GOOD = {"csv": "0,1,x\n1,2,y\n", "json": '{"k": 0, "id": 1, "s": "x"}\n{"k": 1, "id": 2, "s": "y"}\n'}
BAD = {"csv": "0,3,x\nzz,4,y\n1,5\n", "json": '{"k": 0, "id": 3, "s": "x"}\n{"k": "zz", "id": 4}\n{bad\n'}
TEXT_SCHEMA = "k long, id long, s string"


def text_files(lab: "Lab", kind: str) -> Path:
    for name in "ab":
        directory = lab.directory / "data" / name
        directory.mkdir(parents=True)
        for number, text in enumerate((GOOD[kind], BAD[kind]) if name == "b" else (GOOD[kind],)):
            path = directory / f"{number}.{kind}"
            path.write_text(text)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return lab.directory / "data" / "b" / f"1.{kind}"


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_record_that_does_not_fit_is_refused(lab: "Lab", command: Command, kind: str) -> None:
    odd = text_files(lab, kind)
    job = write_job(lab, TEXT_SCHEMA, kind)
    code, output, error = command("run", job, "--json")
    assert (code, json.loads(output)["kind"]) == (1, "SourceError"), error
    assert re.search(rf"file .*{odd.name} has a record that does not fit .*; correct .* mode = ", error), (
        error
    )
    assert lab.results() == Counter({(1, 1, "x"): 1, (2, 2, "y"): 1})
    odd.write_text(GOOD[kind].replace("2", "7"))
    assert command("run", job)[0] == 0
    assert lab.results() == Counter({(1, 1, "x"): 2, (2, 2, "y"): 1, (2, 7, "y"): 1})


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_records_that_do_not_fit_are_counted(lab: "Lab", command: Command, kind: str, mode: str) -> None:
    text_files(lab, kind)
    job = write_job(lab, TEXT_SCHEMA, kind, f', mode = "{mode}"')
    code, output, error = command("run", job, "--json")
    assert code == 0, error
    assert json.loads(output)["malformed_rows"] == 2
    assert "malformed_rows: 2 (records of this run that do not fit the schema" in error
    journal = [json.loads(line) for line in (lab.checkpoint / "journal.jsonl").read_text().splitlines()]
    assert [entry["malformed_rows"] for entry in journal] == [0, 2]
    wanted = Counter({(1, 1, "x"): 1, (2, 2, "y"): 1, (1, 3, "x"): 1})
    if (kind, mode) == ("csv", "PERMISSIVE"):
        wanted[2, 5, None] += 1  # too few cells, but a key
    assert lab.results() == wanted


def test_a_header_in_another_order_is_refused(lab: "Lab", command: Command) -> None:
    for name in "ab":
        directory = lab.directory / "data" / name
        directory.mkdir(parents=True)
        (directory / "0.csv").write_text("k,id,s\n0,1,x\n")
    odd = lab.directory / "data" / "b" / "1.csv"
    odd.write_text("id,k,s\n0,1,x\n")
    os.utime(odd, (1_900_000_000, 1_900_000_000))
    job = write_job(lab, TEXT_SCHEMA, "csv", ', header = "true"')
    code, output, error = command("run", job, "--json")
    assert (code, json.loads(output)["kind"]) == (1, "SourceError"), error
    assert re.search(rf"{odd.name} has a header", error), error
    assert lab.results() == Counter({(1, 1, "x"): 1})


def test_a_frame_of_text_must_say_what_becomes_of_bad_records(lab: "Lab") -> None:
    text_files(lab, "csv")
    reader = lab.spark.readStream.schema(TEXT_SCHEMA)
    sources = {name: reader.csv(str(lab.directory / "data" / name)) for name in "ab"}
    with pytest.raises(SourceError, match=r"source a reads csv with mode ''.*FAILFAST, PERMISSIVE"):
        lab.run(SQL, sources=sources)
    assert not lab.checkpoint.exists()


def test_directories_above_the_source_are_no_partitions(lab: "Lab", command: Command) -> None:
    """Only what is below the path of a source are columns; a pattern has none."""
    inside = lab.directory / "k=7"
    write(lab, "a", 0, rows(6))
    for number, table in enumerate((rows(6), changed("k", None))):
        (inside / "b").mkdir(parents=True, exist_ok=True)
        path = inside / "b" / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    job = write_job(lab)
    text = job.read_text()
    for place in ("k=7/b", "*/b"):
        job.write_text(text.replace("data/b", place))
        code, _, error = command("run", job)
        assert code == 1
        assert re.search(r"file .*/k=7/b/1\.parquet has no column k", error), error
        assert lab.results() == expected(rows(6), rows(6))
        shutil.rmtree(lab.checkpoint)
        shutil.rmtree(lab.out)


def test_a_file_that_is_much_older_than_the_newest_is_read(lab: "Lab", command: Command) -> None:
    write(lab, "a", 0, rows(6))
    write(lab, "b", 0, rows(6))
    job = write_job(lab)
    assert command("run", job)[0] == 0
    old = write(lab, "b", 1, rows(4, 6))
    os.utime(old, (1_600_000_000, 1_600_000_000))
    assert command("run", job)[0] == 0
    assert lab.results() == expected(rows(6), rows(10))


@pytest.mark.parametrize("path", ["data/{name}", "data/{name}/*.parquet"])
def test_sources_that_moved_are_refused(lab: "Lab", command: Command, path: str) -> None:
    """Files in another place look new, and would count twice."""
    for name in "ab":
        write(lab, name, 0, rows(6))
    job = write_job(lab)
    text = job.read_text()
    for name in "ab":
        text = text.replace(f'"data/{name}"', f'"{path.format(name=name)}"')
    job.write_text(text)
    assert command("run", job)[0] == 0
    (lab.directory / "data").rename(lab.directory / "moved")
    job.write_text(text.replace('"data/', '"moved/'))
    code, _, error = command("run", job)
    assert code == 1
    assert re.search(
        r"read source [ab] from parquet .*data/[ab].*, now it is .* put the files back", error
    ), error
    assert lab.results() == expected(rows(6), rows(6))


def test_text_in_the_names_of_directories_stays_text(lab: "Lab", command: Command) -> None:
    """Spark would take 01, 1 and 2e1 for numbers; the schema says that they are none."""
    for number, key in enumerate(("01", "1", "2e1")):
        directory = lab.directory / "data" / "a" / f"k={key}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), directory / "0.parquet")
    (lab.directory / "data" / "b").mkdir()
    table = pa.table({"k": ["01", "1", "2e1"], "id": [0, 1, 2], "s": ["x", "y", "z"]})
    pq.write_table(table, lab.directory / "data" / "b" / "0.parquet")
    job = write_job(lab, None)
    job.write_text(job.read_text().replace('"data/a"\n', '"data/a"\nschema = "id long, k string"\n'))
    code, _, error = command("run", job)
    assert code == 0, error
    assert lab.results() == Counter({(0, 0, "x"): 1, (1, 1, "y"): 1, (2, 2, "z"): 1})


def test_malformed_xml_is_refused(lab: "Lab", command: Command) -> None:
    for name in "ab":
        directory = lab.directory / "data" / name
        directory.mkdir(parents=True)
        bad = "oops" if name == "a" else "1"
        body = f"<row><k>1</k><id>1</id><s>x</s></row><row><k>{bad}</k><id>2</id><s>y</s></row>"
        (directory / "0.xml").write_text(f"<rows>{body}</rows>")
    job = write_job(lab, "k long, id long, s string", "xml", ', rowTag = "row"')
    code, _, error = command("run", job)
    assert code == 1
    assert "malformed" in error.lower(), error
