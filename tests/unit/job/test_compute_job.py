"""Job files of `spillway compute`: what they say, and what is refused before anything starts."""

from pathlib import Path

import pytest

from spillway.compute.unit_costs import UnitCosts
from spillway.errors import JobError
from spillway.job import is_compute_job, read_compute_job
from spillway.job.cost_file import read_costs, write_costs

SOURCES = '[sources.a]\nformat = "parquet"\npath = "a"\n[sources.b]\nformat = "parquet"\npath = "b"\n'
VIEW = '[view]\nsql = "SELECT a.k FROM a JOIN b ON a.k = b.k"\n'
SINK = '[sink]\nformat = "parquet"\npath = "out"\n'


def job(directory: Path, text: str) -> Path:
    file = directory / "job.toml"
    file.write_text(text)
    return file


def test_all_keys(tmp_path: Path) -> None:
    text = (
        '[compute]\ntree = "zigzag"\nmemory = "64MB"\nprocessors = 3\nsample = 0.5\n'
        'rows = { a = 10 }\nselectivity = { "a b" = 0.5 }\n'
    )
    file = job(tmp_path, VIEW + SOURCES + text + SINK)
    assert is_compute_job(file)
    parsed = read_compute_job(file)
    assert parsed.compute.tree == "zigzag"
    assert parsed.compute.memory_bytes == 64 << 20
    assert (parsed.compute.processors, parsed.compute.sample) == (3, 0.5)
    assert parsed.compute.rows == {"a": 10.0}
    assert parsed.compute.selectivity == {"a b": 0.5}
    assert parsed.sources["a"].path == str(tmp_path / "a")
    assert parsed.sink.path == str(tmp_path / "out")


def test_a_job_with_run_is_no_compute_job(tmp_path: Path) -> None:
    assert not is_compute_job(job(tmp_path, VIEW + '[run]\ncheckpoint = "c"\n[compute]\n'))
    assert not is_compute_job(job(tmp_path, VIEW))


@pytest.mark.parametrize(
    ("compute", "sink", "message"),
    [
        ('tree = "wide"', SINK, "must be one of chosen, left-deep"),
        ('memory = "lots"', SINK, "not a size"),
        ("processors = 0", SINK, "must be a whole number, at least 1"),
        ("processors = true", SINK, "must be a whole number"),
        ("sample = 0", SINK, "must be a number, above 0 and at most 1"),
        ('rows = { a = "x" }', SINK, r'\[compute.rows\] a = "x": must be a number'),
        ("rows = { a = -1 }", SINK, r"\[compute.rows\] a = -1: must be a number, at least 0"),
        ('selectivity = { "a b" = 2 }', SINK, "at most 1"),
        ("trees = 1", SINK, "unknown key trees in .compute.; did you mean tree"),
        ("", '[sink]\nformat = "memory"\n', "a computed view goes to parquet, delta, count"),
        ("", '[sink]\nformat = "delta"\n', "has no path"),
        ("", SINK + 'options = { mode = "append" }\n', "must be one of error, overwrite"),
    ],
)
def test_refusals(tmp_path: Path, compute: str, sink: str, message: str) -> None:
    file = job(tmp_path, f"{VIEW}{SOURCES}[compute]\n{compute}\n{sink}")
    with pytest.raises(JobError, match=message):
        read_compute_job(file)


def test_unit_costs_are_stored_and_read_back(tmp_path: Path) -> None:
    costs = UnitCosts(read=1e-6, setup=0.5)
    path = write_costs(costs, tmp_path / "deep" / "costs.json")
    assert read_costs(path) == costs
    assert read_costs(tmp_path / "none.json") == UnitCosts()


@pytest.mark.parametrize("text", ["", "[]", '{"read": 1}', '{"read": -1}'])
def test_damaged_unit_costs_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(text)
    with pytest.raises(JobError, match="run spillway calibrate"):
        read_costs(file)
