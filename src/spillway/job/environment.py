"""`${NAME}` in a job file: values from the environment, so that secrets stay out of files.

`${NAME}` is the value of a variable, `${NAME:-default}` has a default where it is unset or empty, and `$${`
is a plain `${`. An expanded text remembers how it was written: checkpoints compare that, messages show it.
"""

import re
from collections.abc import Mapping
from typing import Any

from spillway.errors import JobError
from spillway.redaction import hide

_REFERENCE = re.compile(r"\$(?P<plain>\$\{)|\$\{(?P<name>[A-Za-z_]\w*)(?P<default>:-[^}]*)?\}|\$\{")


class Expanded(str):
    """A text with values from the environment."""

    written: str
    taken: Mapping[str, str]
    """The variables that it took values from."""

    def __new__(cls, text: str, written: str = "", taken: Mapping[str, str] | None = None) -> "Expanded":
        made = super().__new__(cls, text)
        made.written, made.taken = written or text, taken or {}
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # a worker gets a plain text and need not import this


def expanded(value: Any, where: str, environment: Mapping[str, str]) -> Any:
    """A value of a job file with its variables replaced, in lists and tables too."""
    if isinstance(value, Mapping):
        return {key: expanded(entry, f"{where}.{key}", environment) for key, entry in value.items()}
    if isinstance(value, list):
        return [expanded(entry, where, environment) for entry in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    taken: dict[str, str] = {}
    is_plain = True

    def replacement(found: re.Match[str]) -> str:
        if found["plain"]:
            return "${"
        nonlocal is_plain
        is_plain, name = False, found["name"]
        if name is None:
            raise JobError(f"{where} = {value!r}: write ${{NAME}} for a variable, or $${{ for a plain ${{")
        if environment.get(name) or (name in environment and found["default"] is None):
            taken[name] = environment[name]
            return environment[name]
        if found["default"] is None:
            raise JobError(
                f"{where}: the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        return found["default"].removeprefix(":-")

    text = _REFERENCE.sub(replacement, value)
    return text if is_plain else Expanded(text, value, taken)


def kept_secret(text: str) -> str:
    """The same text; from now on nothing shows what it took from the environment."""
    if isinstance(text, Expanded):
        for name, value in text.taken.items():
            hide(name, value)
    return text


def as_written(text: str) -> str:
    """The text as the job file has it, with variables for their values."""
    return text.written if isinstance(text, Expanded) else text
