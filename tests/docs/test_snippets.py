"""What the README and the documentation show is true: jobs are planned, commands and names exist."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kit.snippets import PAGES, ROOT, Snippet, snippets
from spillway import redaction
from spillway.cli.app import app
from spillway.errors import ViewError
from spillway.job import read_compute_job, read_job, read_maintain_job
from spillway.model import Column, View, parse_ddl
from spillway.plan.explain import explain
from spillway.plan.rules import plan_view
from spillway.plan.sql import parse_view

TIMED = Column("ts", "timestamp", 10_000_000)
KEYED = parse_ddl("k long, id long, p string, x long, y long, z long")
CATALOG = {
    "prices": (*parse_ddl("symbol string, trading_minute timestamp, price double, id long"), TIMED),
    "volumes": parse_ddl("symbol string, trading_minute timestamp, shares long"),
    "reviews": parse_ddl("symbol string, trading_minute timestamp, analyst string, rating int"),
    "news": (*parse_ddl("symbol string, headline string"), TIMED),
    "orders": parse_ddl("id long, customer long, part long, item long"),
    "customers": parse_ddl("id long, name string"),
    "parts": parse_ddl("id long, title string"),
    **dict.fromkeys("abcd", KEYED),
}
"""Columns of sources whose files would bring them along."""
REST = {
    "view": '[view]\nsql = "SELECT a.id FROM a JOIN b ON a.k = b.k"\n',
    "sources": "".join(f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\n' for name in "abcd"),
    "run": '[run]\ncheckpoint = "state"\n',
}
"""What a job has besides the part that a page shows."""
PROGRAMS = {"make", "mkdir", "printf", "python", "spillway", ".ci/run"}
COMMANDS = typer.main.get_command(app)


def by_name(found: object) -> str:
    return found.name if isinstance(found, Snippet) else str(found)


def test_snippets_are_found() -> None:
    for language in ("toml", "python", "sh", "sql", "console"):
        assert snippets(language)


@pytest.mark.parametrize("snippet", snippets("toml"), ids=by_name)
def test_job(snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_SHOWN", {})
    for name in re.findall(r"\$\{(\w+)\}", snippet.text):
        monkeypatch.setenv(name, "from the environment")
    shown = tomllib.loads(snippet.text)
    file = tmp_path / "job.toml"
    if "maintain" in shown:
        file.write_text(snippet.text)
        parse_view(read_maintain_job(file).view, grouped=True)
        return
    rest = [text for table, text in REST.items() if table not in shown and "compute" not in shown]
    file.write_text("\n".join([snippet.text, *rest]))
    job: Any = read_compute_job(file) if "compute" in shown else read_job(file)
    if "sources" in shown and "view" not in shown:
        return
    catalog = {
        name: parse_ddl(source.schema) if source.schema else CATALOG.get(name, KEYED)
        for name, source in job.sources.items()
    }
    assert explain(plan_view(job.view, catalog), processors=2, groups=256)


@pytest.mark.parametrize("snippet", snippets("sql"), ids=by_name)
def test_sql(snippet: Snippet) -> None:
    view = View.sql(snippet.text)
    if snippet.title == "refused":
        with pytest.raises(ViewError):
            plan_view(view, CATALOG)
    elif snippet.title == "maintain":
        parse_view(view, grouped=True)
    else:
        assert explain(plan_view(view, CATALOG), processors=2, groups=256)


@pytest.mark.parametrize("snippet", snippets("sh", "console"), ids=by_name)
def test_commands(snippet: Snippet) -> None:
    assert snippet.commands
    for line in snippet.commands:
        words = [word for word in shlex.split(line) if not re.fullmatch(r"[A-Z_]+=.*", word)]
        assert words[0] in PROGRAMS, line
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        elif words[0] == "spillway":
            command, rest = _resolved(words[1:])
            command.make_context("spillway", rest)  # refuses unknown options and missing arguments


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_in_the_text(path: Path) -> None:
    for line in re.findall(r"`spillway ([a-z][^`]*)`", path.read_text(encoding="utf-8")):
        command, rest = _resolved(shlex.split(line))
        known = {name for part in command.params for name in (*part.opts, *part.secondary_opts)}
        unknown = {word for word in rest if word.startswith("--")} - known - {"--help"}
        assert not unknown, f"spillway {line}"


def _resolved(words: list[str]) -> tuple[Any, list[str]]:
    """The command that words name, and the words after its name."""
    command: Any = COMMANDS
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, f"there is no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def test_python_names_are_resolved(tmp_path: Path) -> None:
    found = snippets("python")
    for number, snippet in enumerate(found):
        (tmp_path / f"snippet_{number}.py").write_text(snippet.text)
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "E9,F821"]
    checked = subprocess.run([*ruff, str(tmp_path)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("snippet", snippets("python"), ids=by_name)
def test_python_imports_exist(snippet: Snippet) -> None:
    for node in ast.walk(ast.parse(snippet.text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = import_module(node.module)
            missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            assert not missing, f"{node.module} has no {', '.join(missing)}"


def test_a_wrong_command_is_noticed() -> None:
    wrong = replace(snippets("sh")[0], text="spillway run job.toml --no-such-option\n")
    with pytest.raises(Exception, match="no-such-option"):
        test_commands(wrong)
