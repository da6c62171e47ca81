"""The reference of the job file: a Markdown page, or the same as JSON, made from the declarations."""

import json
from typing import Any

from spillway.job.run import PolicyParameters
from spillway.job.tables import SPARK_HELP, TABLES, DeclaredTable, TableEntry

_INTRODUCTION = """# Job file

A job file is a TOML document. `spillway run`, `spillway compute` and `spillway maintain` share its tables
for the view, the sources, the sink and Spark. `spillway job check JOB.toml` checks a file without starting
anything, and `spillway job schema` prints a JSON Schema with which editors complete and check keys.

Relative paths are relative to the job file.

## Values from the environment

`${NAME}` in a string takes the value of the environment variable `NAME`, so that secrets stay out of files.
`${NAME:-default}` has a default for a variable that is unset or empty, and `$${` is a plain `${`. Numbers,
sizes and choices can come from the environment too: `processors = "${PROCESSORS:-4}"`.

Messages, journals and checkpoints show `${NAME}` instead of the value of a string. Use such values in
options, connection strings and Spark settings. Do not put a secret into a path: Spark writes the paths of the
files that it has read to its log in the checkpoint. Values of fewer than four characters are not hidden.
"""


def reference_markdown() -> str:
    """The page: a section for each table."""
    sections = [_section(table) for table in TABLES]
    sections.insert(1 + [table.header for table in TABLES].index("[run]"), _policies())
    return "\n".join([_INTRODUCTION, *sections, f"## `[spark]`\n\n{SPARK_HELP}\n"])


def reference_document() -> dict[str, Any]:
    """The same for programs."""
    return {
        "tables": [
            {
                "table": table.header,
                "commands": list(table.commands),
                "help": table.help,
                "keys": [
                    {
                        "name": entry.name,
                        "type": entry.kind.type.replace("`", ""),
                        "required": entry.is_required,
                        "default": entry.default,
                        "unset": entry.unset.replace("`", "") or None,
                        "help": entry.help,
                    }
                    for entry in table.entries
                ],
            }
            for table in TABLES
        ]
    }


def _section(table: DeclaredTable) -> str:
    commands = ", ".join(f"`spillway {command}`" for command in table.commands)
    is_shared = [other.header for other in TABLES].count(table.header) > 1
    title = f"## `{table.header}`" + (f" for {' and '.join(table.commands)}" if is_shared else "")
    lines = [title, "", f"{table.help} Read by {commands}.", ""]
    lines += ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_row(entry) for entry in table.entries), ""])


def _row(entry: TableEntry) -> str:
    default = "required" if entry.is_required else entry.unset or f"`{json.dumps(entry.default)}`"
    cells = (f"`{entry.name}`", entry.kind.type, default, entry.help)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _policies() -> str:
    """The parameters of each placement policy with their defaults."""
    lines = ["## `[run.policy]`", "", "The parameters of the policy that `adapt` names.", ""]
    lines += ["| `adapt` | parameters and their defaults |", "| --- | --- |"]
    for name, parameters in PolicyParameters().by_policy().items():
        pairs = (
            (key, "not set" if value is None else json.dumps(value)) for key, value in parameters.items()
        )
        shown = ", ".join(f"`{key}` {value}" for key, value in pairs)
        lines.append(f"| `{name}` | {shown or 'none'} |")
    return "\n".join([*lines, ""])
