"""Pages that are made when the site is built: the job file reference and the command line reference.

`mkdocs.yml` names this file as a hook. `python docs/generate.py job` (or `cli`) prints a page. The pages come
from the code, so they cannot fall behind it; prose stays in the other pages.
"""

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

BUILT = "<!-- Built from the code by docs/generate.py. -->\n"
TABLES = (
    ("run", "spillway.job", "RunConfig", "How `spillway run` runs the view."),
    ("compute", "spillway.job", "ComputeConfig", "How `spillway compute` computes the view."),
    ("sources.NAME", "spillway.job", "SourceSpec", "One table for each source of the view."),
    ("sink", "spillway.job", "SinkSpec", "Where results go."),
)
WRITTEN = {
    "memory_bytes": "memory",
    "rotation_backlog_bytes": "rotation_backlog",
    "buffer_bytes": "buffer",
}
"""Keys of a job file that are sizes with a unit; the fields are bytes."""
PLAIN = {
    "processors": "Places where state lives and is probed; may change at a restart.",
    "format": "The Spark format of a source, or the kind of sink.",
    "path": "Where the files are, or where they go.",
    "schema": "Columns as Spark writes them; Parquet and ORC files bring their own.",
    "options": "Passed on to the format.",
}
"""Keys whose fields have no text."""
HIDDEN = {"name", "memory_each", "row_seconds", "speeds"}


def job_page() -> str:
    """The reference of all tables and keys of a job file."""
    declared = _declared_reference()
    if declared is not None:
        return f"{BUILT}\n{declared}"
    parts = [f"{BUILT}\n# Job file reference\n", _JOB_INTRODUCTION]
    for table, module, name, text in TABLES:
        config = getattr(importlib.import_module(module), name)
        parts.append(f"\n## `[{table}]`\n\n{text}\n\n| key | default | meaning |\n| --- | --- | --- |")
        parts += _rows(config)
    parts.append(_POLICIES)
    parts += _policy_tables()
    return "\n".join(parts) + "\n"


def cli_page() -> str:
    """The reference of all commands with their options."""
    import typer.main

    from spillway.cli.app import app

    parts = [f"{BUILT}\n# Command line reference\n", _CLI_INTRODUCTION]
    for path, command in _commands("spillway", typer.main.get_command(app)):
        parts.append(f"\n## `{path}`\n\n{_sentence(command.help)}")
        arguments = [part for part in command.params if part.param_type_name == "argument"]
        options = [part for part in command.params if part.param_type_name == "option"]
        shown = " ".join(_argument(part) for part in arguments)
        parts.append(f"\n```console\n$ {path}{' ' if shown else ''}{shown}\n```\n")
        if arguments or options:
            parts.append("| argument or option | default | meaning |\n| --- | --- | --- |")
        named = [(_argument(part), part) for part in arguments] + [(_option(part), part) for part in options]
        parts += [f"| `{name}` | {_default(part)} | {_sentence(part.help)} |" for name, part in named]
    return "\n".join(parts) + "\n"


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "job": ("reference/job-file.md", job_page),
    "cli": ("reference/cli.md", cli_page),
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site (a hook of mkdocs)."""
    from mkdocs.structure.files import File

    for path, make in PAGES.values():
        files.append(File.generated(config, path, content=make()))
    return files


def _declared_reference() -> str | None:
    """What `spillway job reference` prints, if this version has that command."""
    from typer.testing import CliRunner

    from spillway.cli.app import app

    printed = CliRunner().invoke(app, ["job", "reference"])
    return printed.stdout if printed.exit_code == 0 else None


def _rows(config: type[Any]) -> Iterator[str]:
    texts = _field_texts(config)
    for field in fields(config):
        if field.name in HIDDEN:
            continue
        key = WRITTEN.get(field.name, field.name)
        text = texts.get(field.name) or PLAIN.get(field.name, "")
        yield f"| `{key}` | {_field_default(field)} | {_cell(text)} |"


def _field_texts(config: type[Any]) -> dict[str, str]:
    """The text below each field of a dataclass and of the dataclasses that it extends."""
    found: dict[str, str] = {}
    for parent in reversed(config.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(parent))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                found[field.target.id] = text.value.value
    return found


def _field_default(field: "Field[Any]") -> str:
    if field.default is MISSING:
        return "none" if field.default_factory is not MISSING else "required"
    return _value(field.default)


def _value(value: object) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{value}`"


def _policy_tables() -> Iterator[str]:
    registry = importlib.import_module("spillway.policy.placement.registry")
    for name, (_, parameters) in registry.PLACEMENT_POLICIES.items():
        if not fields(parameters):
            continue
        yield f"\n### `{name}`\n\n| parameter | default | meaning |\n| --- | --- | --- |"
        yield from _rows(parameters)


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, below in inner.items():
        yield from _commands(f"{path} {name}", below)


def _argument(part: Any) -> str:
    return str(part.name).upper()


def _option(part: Any) -> str:
    return ", ".join([*part.opts, *part.secondary_opts])


def _default(part: Any) -> str:
    if part.required:
        return "required"
    return "off" if part.default is False else _value(part.default if not callable(part.default) else None)


def _sentence(text: str | None) -> str:
    return _cell(text or "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


_JOB_INTRODUCTION = """
A job file is TOML. Relative paths are relative to the job file. A key that Spillway does not know is
refused, with a suggestion. Sizes are a number of bytes or text such as `"64MB"`.

`[view]` has `sql = "SELECT ..."` or `file = "view.sql"`; for `spillway run` also `tree` and `join`
([views](../views.md#joins-on-different-keys)). `[spark]` takes any Spark setting. The tables of
`spillway maintain` are on the page [Maintain](../maintain.md#settings). `[run]` takes `memory` as one size
or as a list with one size per processor. `[run.emulate]` (`row_seconds`, `speeds`) makes processors slower
on purpose, for experiments.
"""
_POLICIES = """
## `[run.policy]`

Parameters of the policy that `adapt` names; see [Processors and relocation](../relocation.md#policies).
"""
_CLI_INTRODUCTION = """
`spillway --help` and `spillway COMMAND --help` print the same. Progress goes to standard error. With
`--json` the last line of standard output is one JSON object, also for errors.
[Operations](../operations.md#exit-codes) lists the exit codes.
"""


if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]][1]())
