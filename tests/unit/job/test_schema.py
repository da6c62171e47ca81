"""The JSON Schema, the reference and the keywords say what the parser does."""

import ast
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from jsonschema import Draft202012Validator

from spillway.compute import ComputeConfig
from spillway.errors import JobError
from spillway.job import (
    SINK_FORMATS,
    Document,
    RunConfig,
    compute_config,
    job_schema,
    reference_document,
    reference_markdown,
    run_config,
)
from spillway.job.compute import ComputeTable
from spillway.job.keys import keys_of
from spillway.job.keywords import ComputeSettings, RunSettings
from spillway.job.maintain import MaintainTable, ServerTable
from spillway.job.tables import TABLES
from spillway.maintain import MaintainJob, ServerSpec
from spillway.spark.sinks.factory import FORMATS

ROOT = Path(__file__).parents[3]
VALIDATOR = Draft202012Validator(job_schema())
VIEW = {"sql": "SELECT a.k FROM a JOIN b ON a.k = b.k"}
RUN = {
    "view": VIEW,
    "sources": {"a": {"format": "parquet", "path": "a"}, "b": {"format": "kafka", "options": {"x": 1}}},
    "run": {
        "checkpoint": "state",
        "memory": ["64MB", 10_000_000],
        "distribution": [1, 2],
        "adapt": "lazy-disk",
    },
    "sink": {"path": "out"},
    "spark": {"spark.master": "local"},
}
COMPUTE = {
    "view": VIEW,
    "sources": RUN["sources"],
    "compute": {"memory": "64MB", "rows": {"a": 1e6}},
    "sink": {"format": "count"},
}
MAINTAIN = {
    "view": VIEW,
    "sources": {"a": {"server": "one"}, "b": {"server": "one", "table": "t"}},
    "servers": {"one": {"kind": "sqlite", "path": "x.sqlite"}},
    "maintain": {"store": "view.duckdb"},
}


def job_files() -> dict[str, dict[str, Any]]:
    """The job files in tests and documents that stand there as a whole."""
    texts = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "[view]" in node.value:
                texts[f"{path.name}:{node.lineno}"] = node.value
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for number, block in enumerate(path.read_text().split("```toml\n")[1:]):
            texts[f"{path.name} {number}"] = block.split("```")[0]
    for path in ROOT.glob("examples/**/*.toml"):
        texts[path.name] = path.read_text()
    found = {}
    for name, text in texts.items():
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue  # a part of one, or a template
        if {"view", "sources"} <= set(tables):
            found[name] = tables
    return found


def refused(tables: dict[str, Any]) -> bool:
    try:
        Document(tables, ROOT).check()
    except JobError:
        return True
    return False


JOBS = job_files()


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(job_schema())
    assert len(JOBS) > 5
    assert {name for name in JOBS if name.startswith("README")}


@pytest.mark.parametrize("name", JOBS)
def test_the_schema_accepts_every_job_file(name: str) -> None:
    """Those that the parser refuses are incomplete on purpose; documents have none of them."""
    if not refused(JOBS[name]) or ".py" not in name:
        assert [error.message for error in VALIDATOR.iter_errors(JOBS[name])] == []
        assert not refused(JOBS[name])


@pytest.mark.parametrize("tables", [RUN, COMPUTE, MAINTAIN, RUN | {"compute": {}}, RUN | {"sources": {}}])
def test_jobs_that_both_accept(tables: dict[str, Any]) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(tables)] == []
    Document(tables | {"sink": {"path": "out"}} if "sink" in tables else tables, ROOT).check()


WRONG: list[tuple[dict[str, Any], tuple[str, ...], Any]] = [
    (RUN, ("veiw",), {}),
    (RUN, ("servers",), {}),
    (RUN, ("run", "procesors"), 2),
    (RUN, ("run", "processors"), "2"),
    (RUN, ("run", "processors"), 0),
    (RUN, ("run", "groups"), 65_537),
    (RUN, ("run", "memory"), "lots"),
    (RUN, ("run", "memory"), ["64MB", "lots"]),
    (RUN, ("run", "distribution"), "odd"),
    (RUN, ("run", "distribution"), [0, 1]),
    (RUN, ("run", "rotation"), 1),
    (RUN, ("run", "spill"), "least"),
    (RUN, ("run", "adapt"), "flux"),
    (RUN, ("run", "policy"), {"speed": 1}),
    (RUN, ("run", "policy"), {"relocation_threshold": "high"}),
    (RUN, ("run", "emulate"), {"speeds": [0, 1]}),
    (RUN, ("run", "emulate"), {"fast": True}),
    (RUN, ("run", "trigger"), "soon"),
    (RUN, ("run", "checkpoint"), 1),
    (RUN, ("run",), {}),
    (RUN, ("run",), 1),
    (RUN, ("view", "sql"), ""),
    (RUN, ("view", "tree"), "a"),
    (RUN, ("view", "tree"), [["a", 1]]),
    (RUN, ("view", "join"), "broadcast"),
    (RUN, ("sources", "a", "options"), "x"),
    (RUN, ("sources", "a", "server"), "one"),
    (RUN, ("sources", "a"), "parquet"),
    (RUN, ("sink", "format"), "postgres"),
    (RUN, ("spark",), 3),
    (COMPUTE, ("compute", "way"), "fast"),
    (COMPUTE, ("compute", "tree"), "wide"),
    (COMPUTE, ("compute", "sample"), 0),
    (COMPUTE, ("compute", "rows"), {"a": "x"}),
    (COMPUTE, ("compute", "selectivity"), {"a b": 2}),
    (MAINTAIN, ("run",), {"checkpoint": "x"}),
    (MAINTAIN, ("sink",), {}),
    (MAINTAIN, ("servers", "one", "kind"), "oracle"),
    (MAINTAIN, ("servers", "one", "cooperative"), "no"),
    (MAINTAIN, ("servers", "one", "sub_batch"), 0),
    (MAINTAIN, ("sources", "a", "format"), "parquet"),
    (MAINTAIN, ("sources", "a"), {"table": "t"}),
    (MAINTAIN, ("maintain", "strategy"), "clever"),
    (MAINTAIN, ("maintain", "interval_seconds"), -1),
    (MAINTAIN, ("maintain",), {}),
]


@pytest.mark.parametrize(("tables", "path", "value"), WRONG, ids=lambda part: str(part)[:40])
def test_what_the_parser_refuses_the_schema_refuses(
    tables: dict[str, Any], path: tuple[str, ...], value: Any
) -> None:
    def changed(table: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
        first, *rest = keys
        return {**table, first: changed(table[first], tuple(rest)) if rest else value}

    wrong = changed(tables, path)
    assert refused(wrong)
    assert not VALIDATOR.is_valid(wrong)


def test_variables_are_accepted_for_numbers_and_choices() -> None:
    run = {
        "checkpoint": "${DIR}",
        "processors": "${N:-4}",
        "memory": "${M}",
        "spill": "${S}",
        "rotation": "${R}",
    }
    assert VALIDATOR.is_valid(RUN | {"run": run})


def test_defaults_choices_and_descriptions_are_in_the_schema() -> None:
    run = job_schema()["$defs"]["RunConfig"]
    assert run["required"] == ["checkpoint"]
    assert run["properties"]["processors"]["default"] == 2
    assert "lazy-disk" in run["properties"]["adapt"]["anyOf"][0]["enum"]
    assert run["properties"]["memory"]["description"].endswith("Default: no limit.")
    assert run["properties"]["emulate"]["properties"].keys() == {"row_seconds", "speeds"}


def test_the_reference_has_every_key() -> None:
    lines = reference_markdown().splitlines()
    for table in TABLES:
        assert any(line.startswith(f"## `{table.header}`") for line in lines)
        for entry in table.entries:
            start, end = f"| `{entry.name}` | {entry.kind.type} |", f"| {entry.help} |"
            assert any(line.startswith(start) and line.endswith(end) for line in lines), entry.name
    names = {key["name"] for table in reference_document()["tables"] for key in table["keys"]}
    assert {"checkpoint", "memory", "emulate.speeds", "dsn", "store"} <= names


@pytest.mark.parametrize(("config", "settings"), [(RunConfig, RunSettings), (ComputeTable, ComputeSettings)])
def test_the_keywords_are_the_declared_keys(config: type, settings: type) -> None:
    keys = [key for key in keys_of(config) if not key.is_required]
    wanted = {name for key in keys for name in (key.attribute, key.name) if "." not in name}
    assert settings.__annotations__.keys() == wanted
    hints, declared = get_type_hints(settings), get_type_hints(config, include_extras=True)
    for key in keys:
        assert get_origin(declared[key.attribute]) is Annotated
        assert hints[key.attribute] == get_args(declared[key.attribute])[0], key.attribute


def test_keywords_by_either_name() -> None:
    assert run_config("state", {"memory": "64MB", "buffer": "1MB"}) == RunConfig(
        "state", memory_bytes=64 << 20, buffer_bytes=1 << 20
    )
    assert run_config("state", {"memory": ["8MB", "4MB"]}).memory_each == (8 << 20, 4 << 20)
    assert run_config("state", {"memory_bytes": None, "speeds": (1, 2)}).speeds == (1.0, 2.0)
    assert compute_config({"memory": 1000}) == ComputeConfig(memory_bytes=1000)
    with pytest.raises(JobError, match=r"run\(\.\.\.\) has both memory and memory_bytes; give one of them"):
        run_config("state", {"memory": "64MB", "memory_bytes": 1})
    with pytest.raises(JobError, match=r"unknown key memroy in compute\(\.\.\.\); did you mean memory\?"):
        compute_config({"memroy": 1})
    with pytest.raises(JobError, match=r'\[run\] processors = "3": must be a whole number'):
        run_config("state", {"processors": "3"})


@pytest.mark.parametrize(
    "wrong",
    [{"processors": 0}, {"rotation": True}, {"memory_each": (1,)}, {"until": "monday"}, {"speeds": (0, 1)}],
)
def test_configs_made_in_python_are_checked_too(wrong: dict[str, Any]) -> None:
    with pytest.raises(JobError, match=r"\[run"):
        RunConfig("state", **wrong)


def test_sinks_that_are_declared_are_those_that_open() -> None:
    assert (*SINK_FORMATS, "function") == FORMATS


def test_a_maintained_view_has_the_same_defaults_in_python() -> None:
    table = {key.attribute: key.default for key in keys_of(MaintainTable)}
    job = {field.name: field.default for field in fields(MaintainJob)}
    for name in ("strategy", "until", "interval_seconds", "spark_rows"):
        assert table[name] == job[name]
    server = {field.name: field.default for field in fields(ServerSpec)}
    for key in keys_of(ServerTable):
        assert key.attribute not in server or key.is_required or key.default == server[key.attribute]


def test_a_computation_has_the_same_defaults_in_python() -> None:
    assert ComputeTable().config() == ComputeConfig()
    assert [field.name for field in fields(ComputeTable)] == [field.name for field in fields(ComputeConfig)]
