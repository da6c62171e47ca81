"""Pages that are made when the site is built: the job file reference and the command line reference.

`mkdocs.yml` names this file as a hook. `python docs/generate.py job` (or `cli`) prints a page. The pages come
from the code, so they cannot fall behind it; prose stays in the other pages.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

BUILT = "<!-- Built from the code by docs/generate.py. -->\n"


def job_page() -> str:
    """The reference of all tables and keys of a job file, and what the parameters of policies mean."""
    from spillway.job import reference_markdown

    return "\n".join([BUILT, reference_markdown(), _PARAMETERS, *_parameters()]) + "\n"


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


def _parameters() -> Iterator[str]:
    """A row for each parameter of a placement policy; policies share some."""
    from spillway.policy.placement import PLACEMENT_POLICIES

    texts: dict[str, str] = {}
    for _, parameters in PLACEMENT_POLICIES.values():
        declared = type(parameters())
        found = _field_texts(declared)
        texts |= {field.name: found[field.name] for field in fields(declared)}  # type: ignore[arg-type]
    return (f"| `{name}` | {_cell(text)} |" for name, text in texts.items())


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


def _value(value: object) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{value}`"


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


_PARAMETERS = """
## What the parameters of policies mean

[Processors and relocation](../relocation.md#policies) describes the policies.

| parameter of `[run.policy]` | meaning |
| --- | --- |"""
_CLI_INTRODUCTION = """
`spillway --help` and `spillway COMMAND --help` print the same. Progress goes to standard error. With
`--json` the last line of standard output is one JSON object, also for errors.
[Operations](../operations.md#exit-codes) lists the exit codes.
"""


if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]][1]())
